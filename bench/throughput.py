"""Throughput, end to end: ``--jobs`` jobs due every second for ``--seconds``, results in batches.

Prints one JSON line: triggers per second (results stored per second of schedule), CPU milliseconds per
trigger by process, lag (received by the executor minus the scheduled instant), growth of the database by run,
rows lost and doubled.
Example:
``.venv/bin/python bench/throughput.py --db sqlite --jobs 1000 --seconds 20 --batch 50``.
"""

import argparse
import json
import time
from collections import Counter

from harness import Cluster, cluster, database_bytes, log_rows, make_jobs, percentile, read_runs, wait_until
from sqlalchemy import func, select, update

from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog

#: a node stops making fires this long before the end; the rest of the window drains
DRAIN_S = 30


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, object]:
    engine = made.engine()
    made.start_console()
    outs = [made.start_stub(f"stub{number}", batch=arguments.batch) for number in range(arguments.executors)]
    make_jobs(engine, arguments.jobs, cron="* * * * * ?", trigger_status=0)
    for number in range(arguments.nodes):
        made.start_workers(f"workers{number}")

    def registered() -> bool:
        with engine.connect() as connection:
            listed = connection.scalar(select(Group.address_list)) or ""
        return len(listed.split(",")) == arguments.executors and bool(listed)

    wait_until(registered, "the executors to register", made)
    time.sleep(2)
    first_ms = (int(time.time()) + 7) * 1000
    last_ms = first_ms + (arguments.seconds - 1) * 1000
    with engine.begin() as connection:
        connection.execute(
            update(Job).values(trigger_status=1, trigger_next_time=first_ms, not_after_ms=last_ms)
        )
    time.sleep(max(first_ms / 1000 - 6.5 - time.time(), 0))
    before, bytes_before = made.cpu_seconds(), database_bytes(engine, arguments.db)
    expected = arguments.jobs * arguments.seconds

    def finished() -> bool:
        with engine.connect() as connection:
            return (
                connection.scalar(select(func.count()).select_from(Fire)) == 0
                and time.time() * 1000 > last_ms
            )

    wait_until(finished, "all results", made, timeout_s=arguments.seconds + 7 + DRAIN_S)
    ended = time.time()
    after = made.cpu_seconds()
    for number in range(arguments.executors):
        made.stop(f"stub{number}")
    received = {log_id: at_ms for out in outs for log_id, _, at_ms in read_runs(out)}
    doubled_starts = sum(len(read_runs(out)) for out in outs) - len(received)
    rows = log_rows(engine)
    grown = database_bytes(engine, arguments.db) - bytes_before
    logged = {(row.job_id, row.fire_time) for row in rows}
    fires = Counter((row.job_id, row.fire_time) for row in rows)
    instants = range(first_ms, last_ms + 1, 1000)
    with engine.connect() as connection:
        jobs = list(connection.scalars(select(Job.id)))
        handled = (
            connection.scalar(select(func.count()).select_from(JobLog).where(JobLog.handle_code == 200)) or 0
        )
    lags = [received[row.id] - row.fire_time for row in rows if row.id in received]
    busy_s = max(ended - first_ms / 1000, arguments.seconds)
    return {
        "bench": "throughput",
        "db": arguments.db,
        "jobs": arguments.jobs,
        "seconds": arguments.seconds,
        "batch": arguments.batch,
        "nodes": arguments.nodes,
        "executors": arguments.executors,
        "triggers_per_s": round(handled / busy_s, 1),
        "drained_after_s": round(ended - last_ms / 1000, 2),
        "lag_ms": {
            "p50": percentile(lags, 0.5),
            "p99": percentile(lags, 0.99),
            "max": round(max(lags, default=0), 1),
        },
        "worst_lag_ms_by_second": worst_by_second(
            lags, [row.fire_time for row in rows if row.id in received]
        ),
        "early": sum(lag < 0 for lag in lags),
        "cpu_ms_per_trigger": {
            name: round((after[name] - before.get(name, 0)) * 1000 / expected, 3) for name in after
        },
        "bytes_per_run": round(grown / max(len(rows), 1)),
        "lost": sum((job, instant) not in logged for job in jobs for instant in instants),
        "doubled": sum(count - 1 for count in fires.values()) + doubled_starts,
        "unfinished": expected - handled,
    }


def worst_by_second(lags: list[float], instants: list[int]) -> list[int]:
    """Return the worst lag of each scheduled second, in order: a cold start shows in the first."""
    worst: dict[int, float] = {}
    for lag, instant in zip(lags, instants, strict=True):
        worst[instant] = max(worst.get(instant, lag), lag)
    return [round(worst[instant]) for instant in sorted(worst)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=("sqlite", "mariadb", "postgresql"), default="sqlite")
    parser.add_argument("--jobs", type=int, default=100, help="jobs due each second")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=50, help="results of one callback request")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--executors", type=int, default=1)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        print(json.dumps(measure(made, arguments)))


if __name__ == "__main__":
    main()
