"""Pages of the list of runs beside a log of ``--rows`` rows: page 1 with some filters, and page 1,000.

Everything runs in this process on a database of its own, so that the statements are measured. Prints one JSON
line with medians and 95th percentiles in ms. The stages of a run: long_log.py. Example: ``.venv/bin/python
bench/lists.py --db mariadb --rows 1000000``.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from harness import KINDS, cluster, make_jobs
from sqlalchemy import Engine, text, update
from yardstick import report

from app.database.engine import read_scope
from app.models.group import Group
from app.store.runs import listing as log_lists

JOBS = 1_000
#: rows per insert while the table is filled
FILL = 500_000
#: page cache of SQLite meanwhile: every row changes another page of the index by job
FILL_CACHE_KB = 256_000
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
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:  # the pool hands out the same connection below
            connection.exec_driver_sql(f"PRAGMA cache_size = -{FILL_CACHE_KB}")
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
    return summary(took, used)


def summary(took: Sequence[float], used: Sequence[float]) -> dict[str, float]:
    """Return median and 95th percentile of durations, and the median of their CPU time."""
    return {
        "median": round(statistics.median(took), 3),
        "p95": round(sorted(took)[int(len(took) * 0.95) - 1], 2),
        "cpu": round(statistics.median(used), 3),
    }


def prepare(engine: Engine, rows: int) -> float:
    """Make the jobs, give them an address and fill the log; return how long the log took, in seconds."""
    make_jobs(engine, JOBS, cron="0 0 0 1 1 ? 2090", first_ms=3_786_912_000_000)
    with engine.begin() as connection:
        connection.execute(update(Group).values(address_type=1, address_list="http://127.0.0.1:9999/"))
    started = time.perf_counter()
    fill(engine, rows, time.time_ns() // 1_000_000)
    return round(time.perf_counter() - started, 1)


def measure() -> dict[str, dict[str, float]]:
    """Return the figures of each page of the list, of the database this process is bound to."""
    pages = {
        "list_page_1": {"group_id": 1},
        "list_page_1_of_job": {"job_id": 17},
        "list_page_1_failed": {"group_id": 1, "status": 2},
        "list_page_1_killed": {"group_id": 1, "status": 6},
        "list_page_1_running": {"group_id": 1, "status": 3},
    }
    found = {name: timed(partial(one_page, 0, **filters)) for name, filters in pages.items()}
    return found | {"list_page_1000": timed(partial(one_page, 9_990, group_id=1))}


def one_page(start: int, **filters: int) -> None:
    """Read one page as the console does: the rows and the count."""
    with read_scope() as session:
        log_lists.list_logs(session, log_lists.LogFilter(**filters), group_ids=None, start=start, length=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        filled_s = prepare(made.engine(), arguments.rows)
        report("lists", db=arguments.db, rows=arguments.rows, filled_s=filled_s, **measure())


if __name__ == "__main__":
    main()
