"""Stages of a run beside a log of ``--rows`` rows, compared with those beside a short one.

Both databases exist at once and take short turns, and each turn is compared with the other database's turn
beside it: a ratio is the median of these, so a machine that changes its speed slows both. Each batch is
of other jobs: every run changes another page of the log's index by job. The runs of a turn are deleted after
it, or the short log would grow. ``all`` is the mean time of a batch: it has the checkpoints of SQLite,
whichever stage they delay. Everything runs in this process. Example:
``.venv/bin/python bench/long_log.py --db mariadb --rows 1000000``.
"""

import argparse
import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import lists
from harness import Cluster, cluster
from sqlalchemy import delete, text
from yardstick import report

from app.db import transact
from app.domain.enums import TriggerType
from app.domain.evidence import Fate, Verdict
from app.domain.routing import RouteState
from app.models.log import JobLog
from app.pipeline.claim import claim
from app.pipeline.claimed import Claimer
from app.pipeline.complete import callback_result, complete
from app.pipeline.record import record
from app.pipeline.scan import scan
from app.pipeline.send import Sent
from app.store import fires
from app.store.fires import NewFire

SHORT = 1_000
#: runs of a batch, as in a busy second
BATCH = 100
#: turns of each database, batches of a turn, and batches before they count
TURNS, BATCHES, WARM_UP = 24, 4, 2
STAGES = ("scan", "claim", "record", "callback")
T = TypeVar("T")


@dataclass
class Log:
    """A database with a log of some rows, and what its batches took, in ms by stage and for ``all``."""

    made: Cluster
    rows: int
    filled_s: float = 0.0
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: CPU time of this process
    used: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def fill(self) -> None:
        """Fill the log; what the server does about it later is done at once."""
        engine = self.made.engine()
        self.filled_s = lists.prepare(engine, self.rows)
        if engine.dialect.name == "postgresql":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE"))
                connection.execute(text("CHECKPOINT"))

    def take_turn(self, claimer: Claimer, batches: Iterator[int]) -> None:
        """Run batches of fires, then delete their runs."""
        engine = self.made.engine()  # binds this process to it
        for _ in range(WARM_UP):
            self.run_batch(claimer, next(batches))
        for figures in (self.took, self.used):
            for stage in STAGES:
                del figures[stage][-WARM_UP:]
        began, used = time.perf_counter(), time.process_time()
        for _ in range(BATCHES):
            self.run_batch(claimer, next(batches))
        self.took["all"].append((time.perf_counter() - began) * 1000 / BATCHES)
        self.used["all"].append((time.process_time() - used) * 1000 / BATCHES)
        with engine.begin() as connection:
            connection.execute(delete(JobLog).where(JobLog.id > self.rows))

    def run_batch(self, claimer: Claimer, number: int) -> None:
        """Bring BATCH fires of other jobs than the last batch through the stages."""
        now_ms = time.time_ns() // 1_000_000
        first = number * BATCH % lists.JOBS
        jobs = range(first + 1, first + BATCH + 1)
        new = [NewFire(f"bench:{job}:{number}", job, now_ms, TriggerType.CRON) for job in jobs]
        due = transact(lambda session: fires.insert_fires(session, new))
        self.timed("scan", lambda: scan(node="bench", zone="UTC", now_ms=now_ms))
        batch = self.timed(
            "claim", lambda: transact(lambda session: claim(session, due, claimer, now_ms=now_ms))
        )
        assert len(batch.claimed) == BATCH, len(batch.claimed)
        sents = [Sent(run, Verdict(Fate.ACCEPTED, 200, ""), (), 1) for run in batch.claimed]
        self.timed(
            "record", lambda: transact(lambda session: record(session, sents, node="bench", now_ms=now_ms))
        )
        results = [callback_result(run.log_id, 200, None) for run in batch.claimed]
        self.timed("callback", lambda: transact(lambda session: complete(session, results, now_ms=now_ms)))

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        began, used = time.perf_counter(), time.process_time()
        result = work()
        self.took[stage].append((time.perf_counter() - began) * 1000)
        self.used[stage].append((time.process_time() - used) * 1000)
        return result

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Median time, 95th percentile and median CPU time of the stages, in ms."""
        return {stage: lists.summary(took, self.used[stage]) for stage, took in self.took.items()}


def ratios(short: dict[str, list[float]], long: dict[str, list[float]]) -> dict[str, float]:
    """Return the median, over the turns, of how many times as long a turn of ``long`` took, by stage."""

    def turns(took: list[float]) -> list[float]:
        size = len(took) // TURNS
        return [statistics.fmean(took[start : start + size]) for start in range(0, len(took), size)]

    return {
        stage: round(statistics.median(b / a for a, b in zip(turns(short[stage]), turns(took), strict=True)), 2)
        for stage, took in long.items()
    }


def compare(db: str, rows: int) -> dict[str, Any]:
    """Return how many times as long each stage, and all, take beside the long log, and what they took."""
    claimer = Claimer("bench", "UTC", ("token",), 5_000, 3_000, RouteState(), lambda _address: 1_000_000)
    with contextlib.ExitStack() as stack:
        short, long = logs = [Log(stack.enter_context(cluster(db)), size) for size in (SHORT, rows)]
        for log in logs:
            log.fill()
        batches = count()
        for turn in range(TURNS):
            for log in logs if turn % 2 == 0 else reversed(logs):
                log.take_turn(claimer, batches)
        long.made.engine()  # binds this process to it
        page_ms = {name: figures["p95"] for name, figures in lists.measure().items()}
    return {
        "ratios": ratios(short.took, long.took),
        "cpu_ratios": ratios(short.used, long.used),
        "stages_ms": {f"{log.rows:,}": log.figures for log in logs},
        "list_p95_ms": page_ms,
        "filled_s": long.filled_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=("sqlite", "mariadb", "postgresql"), default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    report("long_log", db=arguments.db, rows=arguments.rows, **compare(arguments.db, arguments.rows))


if __name__ == "__main__":
    main()
