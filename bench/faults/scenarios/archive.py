"""Scenario ``archive``: while everything is killed, each archived log is a prefix of its executor's file.

Two executors of our own client, whose runs write a line every 50 ms for up to eight seconds; two nodes on a
database server. What was written is read from the executors' own files.
"""

import argparse
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.blobs.folder import Folder
from app.domain.archive.chunks import parse_chunks
from app.domain.archive.packing import unpack_lines
from bench.faults.checker import Watched, check
from bench.faults.installation import database
from bench.faults.jobs import add_watched, stop_watched
from bench.faults.judging import settled_history, verdict
from bench.faults.scenarios.random_faults import has_recovered
from bench.faults.site import CLIENTS, OWN, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

SETTLE_S = 240
#: seconds that runs write; one second is the shortest after which an executor may be killed
WRITES_S = (0, 1, 3, 8)
FETCHED = "SELECT COUNT(*) AS n FROM xxl_job_log_archive WHERE state IN ('open', 'ending')"
ROWS = "SELECT * FROM xxl_job_log_archive ORDER BY log_id"
#: runs that an executor has had and whose logs nothing has begun to fetch
WITHOUT = """
    SELECT COUNT(*) AS n FROM xxl_job_log l LEFT JOIN xxl_job_log_archive a ON a.log_id = l.id
    WHERE a.id IS NULL AND l.trigger_code = 200 AND l.handle_code <> 0
"""


def archive(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers, archivers, executors and the database are killed while runs write logs."""
    store = Folder(folder / "archive")
    with database(db, folder) as (url, server):
        migrate(url)
        settings = {"XXL_JOB_LOG_ARCHIVE": "all", "XXL_JOB_LOG_ARCHIVE_URL": store.path.as_uri()}
        site = Site(Cluster(folder, url, settings), options.seed, (OWN,))
        try:
            site.start(1 if server is None else 2)
            jobs = _add_jobs(site)
            away = server if options.away else None
            storm = Storm(site.cluster, random.Random(options.seed), site.starters, away)
            storm.rage(options.seconds)
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            jobs = stop_watched(site.cluster.console, jobs)
            history, settled_s = settled_history(site.cluster, jobs, SETTLE_S)
            eventually(partial(_is_fetched, site.cluster), SETTLE_S, "all logs are fetched")
            found = check(history)
            numbers = Counter[str]()
            for row in site.cluster.select(ROWS):
                found.violations += _check(row, store, folder, numbers)
            if without := site.cluster.select(WITHOUT)[0]["n"]:
                found.violations.append(f"{without} runs have no archived log")
            result = {"faults": dict(storm.counts), "settled_s": settled_s, "archived": dict(numbers)}
            return result | verdict(site.cluster, history, found)
        finally:
            site.stop()


def _add_jobs(site: Site) -> list[Watched]:
    console = site.cluster.console
    group_id = console.add_group(OWN)
    console.await_addresses(group_id, len(CLIENTS))
    kinds = [
        {"scheduleConf": "0/2 * * * * ?", "executorHandler": "talk", "executorParam": str(seconds)}
        for seconds in WRITES_S
    ]
    return [add_watched(console, group_id, **kind) for kind in kinds]


def _is_fetched(cluster: Cluster) -> bool:
    try:
        return not cluster.select(FETCHED)[0]["n"]
    except DBAPIError:
        return False


def _check(row: Any, store: Folder, folder: Path, numbers: Counter[str]) -> list[str]:
    """Return what is wrong with an archived log."""
    lines, last = list[str](), 0
    for chunk in parse_chunks(row["chunks"] or ""):
        if chunk.first != last + 1:
            return [f"log {row['log_id']}: line {chunk.first} follows line {last}"]
        lines += unpack_lines(chunk, store.get(f"{row['folder']}/{chunk.name}"))
        last = chunk.last
    numbers["logs"] += 1
    numbers[f"{row['state']} {row['reason']}".strip()] += 1
    numbers["lines"] += len(lines)
    if len(lines) != row["last_line"] != 0:
        return [f"log {row['log_id']}: {len(lines)} lines, not {row['last_line']}"]
    files = [path.read_text(encoding="utf-8") for path in folder.glob(f"home-*/**/{row['log_id']}.log")]
    written = [text[: text.rfind("\n") + 1].split("\n")[:-1] for text in files]
    numbers["lines not fetched"] += max((len(each) - len(lines) for each in written), default=0)
    if lines and not any(each[: len(lines)] == lines for each in written):
        return [f"log {row['log_id']}: it is not the beginning of its executor's file"]
    if row["state"] == "complete" and written and lines not in written:
        return [f"log {row['log_id']}: it is called whole and is not"]
    return []
