"""Cost of a log of ``--rows`` rows: scan, claim, record, callback and pages 1 and 1,000 of the list.

Everything runs in this process on a database of its own, so that the statements are measured. Prints one JSON
line with medians and 95th percentiles in ms. Example: ``.venv/bin/python bench/lists.py --db mariadb --rows
1000000``.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import cluster, make_jobs
from sqlalchemy import Engine, text, update
from yardstick import report

from app.db import read_scope, transact
from app.domain.enums import TriggerType
from app.domain.evidence import Fate, Verdict
from app.domain.routing import RouteState
from app.models.group import Group
from app.pipeline.claim import claim
from app.pipeline.claimed import Claimer
from app.pipeline.complete import callback_result, complete
from app.pipeline.record import record
from app.pipeline.scan import scan
from app.pipeline.send import Sent
from app.store import fires, log_lists
from app.store.fires import NewFire

JOBS = 1_000
#: rows per insert while the table is filled
FILL = 500_000
#: fires per claim, as in a busy second
BATCH = 100
ROUNDS = 20


#: by dialect: SQL that counts from {first} to {last}, writes {at} seconds as a DATETIME, takes a remainder
MADE_BY_SERVER = {
    "sqlite": (
        "(WITH RECURSIVE n(number) AS (SELECT {first} UNION ALL SELECT number + 1 FROM n WHERE number <"
        " {last}) SELECT number FROM n)",
        "strftime('%Y-%m-%d %H:%M:%S.000000', {at}, 'unixepoch')",
        "number % {by}",
    ),
    "mysql": (
        "(SELECT seq AS number FROM seq_{first}_to_{last}) AS numbers",
        "FROM_UNIXTIME(FLOOR({at}))",
        "mod(number, {by})",
    ),
    "postgresql": (
        "generate_series({first}, {last}) AS number",
        "to_timestamp(floor({at})) AT TIME ZONE 'UTC'",
        "mod(number, {by})",
    ),
}


def fill(engine: Engine, rows: int, now_ms: int) -> None:
    """Insert finished log rows of the last 30 days, 1 in 50 failed, over all jobs, in the server."""
    numbers, moment, remainder = MADE_BY_SERVER[engine.dialect.name]
    at = f"{now_ms // 1000} - ({rows} - number) * {30 * 86_400 / rows:.6f}"
    for first in range(1, rows + 1, FILL):
        source = numbers.format(first=first, last=min(first + FILL - 1, rows))
        with engine.begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO xxl_job_log (job_group, job_id, executor_address, executor_handler,"
                " executor_param,"
                " executor_fail_retry_count, trigger_time, trigger_code, trigger_msg, handle_time,"
                " handle_code, alarm_status)"
                f" SELECT 1, {remainder.format(by=JOBS)} + 1, 'http://127.0.0.1:9999/', 'bench', '', 0,"
                f" {moment.format(at=at)}, 200,"
                f" 'Trigger: CRON', {moment.format(at=f'{at} + 1')}, CASE WHEN {remainder.format(by=50)} ="
                " 0 THEN 500 ELSE 200 END, 0"
                f" FROM {source}"
            )
    with engine.begin() as connection:
        connection.execute(text("ANALYZE TABLE xxl_job_log" if engine.dialect.name == "mysql" else "ANALYZE"))


def timed(work: Callable[[], object], rounds: int = ROUNDS) -> dict[str, float]:
    """Return median and 95th percentile of a function's duration, and the median CPU time, in ms."""
    took, used = [], []
    for _ in range(rounds):
        started, used_before = time.perf_counter(), time.process_time()
        work()
        took.append((time.perf_counter() - started) * 1000)
        used.append((time.process_time() - used_before) * 1000)
    p95 = sorted(took)[int(rounds * 0.95) - 1]
    return {
        "median": round(statistics.median(took), 2),
        "p95": round(p95, 2),
        "cpu": round(statistics.median(used), 2),
    }


def measure(engine: Engine, rows: int) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    make_jobs(engine, JOBS, cron="0 0 0 1 1 ? 2090", first_ms=3_786_912_000_000)
    with engine.begin() as connection:
        connection.execute(update(Group).values(address_type=1, address_list="http://127.0.0.1:9999/"))
    started = time.perf_counter()
    fill(engine, rows, now_ms)
    filled_s = round(time.perf_counter() - started, 1)
    claimer = Claimer("bench", "UTC", ("token",), 5_000, 3_000, RouteState(), lambda _address: 1_000_000)
    pipeline: dict[str, list[float]] = {"claim": [], "record": [], "callback": []}
    for number in range(ROUNDS):
        for stage, took in run_batch(claimer, now_ms + number).items():
            pipeline[stage].append(took)
    pages = {
        "list_page_1": {"group_id": 1},
        "list_page_1_of_job": {"job_id": 17},
        "list_page_1_failed": {"group_id": 1, "status": 2},
        "list_page_1_killed": {"group_id": 1, "status": 6},
        "list_page_1_running": {"group_id": 1, "status": 3},
    }
    lists = {name: timed(partial(one_page, 0, **filters)) for name, filters in pages.items()}
    lists["list_page_1000"] = timed(partial(one_page, 9_990, group_id=1))
    stages = {stage: {"median": round(statistics.median(took), 2)} for stage, took in pipeline.items()}
    return {
        "filled_s": filled_s,
        "scan": timed(partial(scan, node="bench", zone="UTC", now_ms=now_ms)),
        **stages,
        **lists,
    }


def one_page(start: int, **filters: int) -> None:
    """Read one page as the console does: the rows and the count."""
    with read_scope() as session:
        log_lists.list_logs(session, log_lists.LogFilter(**filters), group_ids=None, start=start, length=10)


def run_batch(claimer: Claimer, now_ms: int) -> dict[str, float]:
    """Run BATCH fires through the pipeline; return the duration of each stage in ms."""
    new = [NewFire(f"bench:{job}:{now_ms}", job, now_ms, TriggerType.CRON) for job in range(1, BATCH + 1)]
    due = transact(lambda session: fires.insert_fires(session, new))
    marks = [time.perf_counter()]
    claimed = transact(lambda session: claim(session, due, claimer, now_ms=now_ms)).claimed
    marks.append(time.perf_counter())
    sents = [Sent(run, Verdict(Fate.ACCEPTED, 200, ""), (), 1) for run in claimed]
    transact(lambda session: record(session, sents, node="bench", now_ms=now_ms))
    marks.append(time.perf_counter())
    transact(
        lambda session: complete(
            session, [callback_result(run.log_id, 200, None) for run in claimed], now_ms=now_ms
        )
    )
    marks.append(time.perf_counter())
    took = [(after - before) * 1000 for before, after in zip(marks, marks[1:], strict=False)]
    return dict(zip(("claim", "record", "callback"), took, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=("sqlite", "mariadb", "postgresql"), default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        figures = measure(made.engine(), arguments.rows)
        report("lists", db=arguments.db, rows=arguments.rows, **figures)


if __name__ == "__main__":
    main()
