"""Search of archived logs: first hits with the index, beside a search that decompresses everything.

``--runs`` runs of 10 to 1,000 lines, most of them short, of 300 jobs; lines have times, numbers and random
ids, as those of real programs. All of it is archived in a folder, without waiting for the disk, and indexed.
Then, for a frequent word, a rare one, one that is nowhere and regular expressions: the time until the first
page with hits, or the end, (``first_ms``) (the best of three) and that of reading,
decompressing and searching every chunk (``everything_ms``). Example: ``.venv/bin/python bench/log_search.py
--runs 100000``.
"""

import argparse
import gzip
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from harness import KINDS, cluster, make_jobs
from sqlalchemy import Engine, insert, select
from yardstick import report

from app.blobs.folder import Folder
from app.clock import MINUTE_MS, now_ms
from app.database.engine import read_scope
from app.database.rows.bulk import table_of
from app.domain.access.permissions import system_actor
from app.domain.archive.chunks import dump_chunks, folder_of, parse_chunks
from app.domain.archive.packing import pack_lines
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.services.archive.indexing import FOLDER, Indexer
from app.services.archive.search import LineQuery, Place, search_logs

JOBS = 300
BATCH = 2_000
ADMIN = system_actor("bench")
WORDS = (
    *("order", "customer", "warehouse", "shipped", "failed", "retry", "timeout", "connection", "refused"),
    *("payment", "invoice", "sync", "table", "rows", "batch", "commit", "start", "finished", "parse"),
    *("upload", "queue", "message", "partition", "offset", "lag", "heartbeat", "session", "token", "cache"),
)
#: runs of which one has the rare word
RARE_EACH = 20_000
#: name -> text and whether it is a regular expression
QUERIES = {
    "frequent": ("warehouse", False),
    "rare": ("reconciliation-mismatch", False),
    "nowhere": ("OutOfMemoryError", False),
    "regex_rare": (r"reconciliation-\w+ of \d+", True),
    "regex_nowhere": (r"(OutOf|StackOverflow)\w*Error: \d+", True),
    "regex_without_literal": (r"\d{4}-\d\d-\d\d.*[xz]{9}", True),
}


class Unsynced(Folder):
    """A folder whose files are not synchronised."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def lines_of(chance: random.Random, job: int, count: int, at_ms: int) -> Iterator[str]:
    """Yield lines of a run."""
    for number in range(count):
        at_ms += chance.randrange(300)
        clock = datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(" ", "milliseconds")[:-6]
        words = [WORDS[(job * 7 + number % 6 * step) % len(WORDS)] for step in range(4)]
        trace = f"{chance.getrandbits(64):016x} " if number % 4 == 0 else ""
        yield (
            f"{clock} [job-{job}-{chance.randrange(8)}] {'INFO' if number % 40 else 'WARN'}"
            f" com.acme.{words[0].title()}{words[1].title()} - {trace}{words[0]} {chance.randrange(10**7)}"
            f" {words[1]} {words[2]} {chance.randrange(1_000)} ms {words[3]}"
        )


def fill(engine: Engine, store: Folder, runs: int) -> dict[str, int]:
    """Archive runs; return their lines and bytes."""
    chance, start_ms = random.Random(52), now_ms() - runs * MINUTE_MS
    group_id = make_jobs(engine, JOBS, cron="0 0 0 1 1 ? 2090", first_ms=3_786_912_000_000)
    totals = {"lines": 0, "text_bytes": 0, "stored_bytes": 0}
    for first in range(1, runs + 1, BATCH):
        logs, archives = list[dict[str, Any]](), list[dict[str, Any]]()
        for log_id in range(first, min(first + BATCH, runs + 1)):
            job, at_ms = chance.randrange(1, JOBS + 1), start_ms + log_id * MINUTE_MS
            lines = [*lines_of(chance, job, int(10 * 100 ** chance.random()), at_ms)]
            if log_id % RARE_EACH == RARE_EACH // 2:
                lines.append(f"reconciliation-mismatch of {log_id}")
            chunk, stored = pack_lines(1, lines)
            folder = folder_of(job, log_id, at_ms, UTC)
            store.put(f"{folder}/{chunk.name}", stored)
            of_job = {"job_id": job, "job_group": group_id}
            codes = {"trigger_code": 200, "handle_code": 200}
            logs.append({"id": log_id, "trigger_time": at_ms, **of_job, **codes})
            archived = {
                "log_id": log_id,
                "folder": folder,
                "state": "complete",
                "last_line": chunk.last,
                **of_job,
            }
            archives.append(
                {**archived, "size": chunk.size, "stored": len(stored), "chunks": dump_chunks([chunk])}
            )
            totals["lines"] += chunk.last
            totals["text_bytes"] += chunk.size
            totals["stored_bytes"] += len(stored)
        with engine.begin() as connection:
            connection.execute(insert(table_of(JobLog)), logs)
            connection.execute(insert(table_of(LogArchive)), archives)
    return totals


def everything(store: Folder, wanted: str) -> int:
    """Read, decompress and search all chunks, as without an index; return the number of matching lines."""
    count, needle, last_id = 0, wanted.encode(), 2**62
    query = select(LogArchive.log_id, LogArchive.folder, LogArchive.chunks).order_by(LogArchive.log_id.desc())
    while True:
        with read_scope() as session:
            rows = session.execute(query.where(LogArchive.log_id < last_id).limit(BATCH)).all()
        if not rows:
            return count
        for _, folder, chunks in rows:
            for chunk in parse_chunks(chunks):
                text = gzip.decompress(store.get(f"{folder}/{chunk.name}"))
                if needle in text:
                    count += sum(needle in line for line in text.split(b"\n"))
        last_id = rows[-1][0]


def search(store: Folder, text: str, *, is_regex: bool, is_whole: bool) -> int:
    """Search up to the first page of hits, or ``is_whole`` to the end or 1,000 hits; return the hits."""
    count, place = 0, Place()
    while place is not None and count < 1_000:
        page = search_logs(LineQuery(text, is_regex), actor=ADMIN, store=store, limit=50, after=place)
        count, place = count + len(page.hits), page.next
        if page.hits and not is_whole:
            break
    return count


def best_ms(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the shortest time of some rounds in ms."""
    took = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
        if took[-1] > 60:
            break
    return round(min(took) * 1_000, 1)


def main() -> None:
    """Fill, index, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--runs", type=int, default=100_000)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        store = Unsynced(Path(made.home) / "log-archive")
        engine = made.engine()
        totals = fill(engine, store, arguments.runs)
        indexer = Indexer(store, now_ms)
        started, cpu = time.perf_counter(), time.process_time()
        while indexer.build():
            pass
        index = {
            "index_s": round(time.perf_counter() - started, 1),
            "index_cpu_s": round(time.process_time() - cpu, 1),
            "index_bytes": sum(blob.size for blob in store.list(FOLDER)),
        }
        everything_ms = best_ms(lambda: everything(store, QUERIES["nowhere"][0]), 2)
        figures = {}
        for name, (text, is_regex) in QUERIES.items():
            has_literal = name != "regex_without_literal"
            first_page = partial(search, store, text, is_regex=is_regex, is_whole=False)
            first = best_ms(first_page, 3 if has_literal else 1)
            hits = search(store, text, is_regex=is_regex, is_whole=has_literal)
            figures[name] = {"first_ms": first, "hits": hits, "share": round(first / everything_ms, 4)}
        report(
            "log_search",
            db=arguments.db,
            runs=arguments.runs,
            everything_ms=everything_ms,
            **totals,
            **index,
            **figures,
        )


if __name__ == "__main__":
    main()
