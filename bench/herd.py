"""Thundering herd: ``--jobs`` jobs due in the same second, once cold and then ``--rounds`` times warm.

Prints one JSON line: per round, the delay of the first and the last run at an executor, and lost or doubled
runs. Example: ``.venv/bin/python bench/herd.py --db sqlite --jobs 5000``.
"""

import argparse
import time
from collections import Counter
from typing import Any

from harness import KINDS, Cluster, cluster, log_rows, make_jobs, read_runs, wait_until
from sqlalchemy import func, select, update
from yardstick import report

from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job

#: seconds between two herds: enough for results to arrive
SPACING_S = 10


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    made.start_console()
    outs = [made.start_stub(f"stub{number}") for number in range(arguments.executors)]
    make_jobs(engine, arguments.jobs, cron="0/10 * * * * ?", trigger_status=0)
    made.start_workers()

    def registered() -> bool:
        with engine.connect() as connection:
            listed = connection.scalar(select(Group.address_list)) or ""
        return bool(listed) and len(listed.split(",")) == arguments.executors

    wait_until(registered, "the executors to register", made)
    first_ms = (int(time.time()) // SPACING_S + 2) * SPACING_S * 1000
    instants = [first_ms + number * SPACING_S * 1000 for number in range(arguments.rounds + 1)]
    with engine.begin() as connection:
        connection.execute(
            update(Job).values(trigger_status=1, trigger_next_time=first_ms, not_after_ms=instants[-1])
        )

    def finished() -> (
        bool
    ):  # queries the database only after the last instant: on SQLite every session is a writer
        if time.time() * 1000 < instants[-1] + 2_000:
            return False
        with engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(Fire)) == 0

    wait_until(finished, "all results", made, timeout_s=(arguments.rounds + 3) * SPACING_S + 60)
    for number in range(arguments.executors):
        made.stop(f"stub{number}")
    runs = [run for out in outs for run in read_runs(out)]
    received = {log_id: at_ms for log_id, _, at_ms in runs}
    rows = log_rows(engine)
    counted = Counter((row.job_id, row.fire_time) for row in rows)
    return {
        "bench": "herd",
        "db": arguments.db,
        "jobs": arguments.jobs,
        "executors": arguments.executors,
        "rounds": [
            round_of([received[row.id] - at for row in rows if row.fire_time == at and row.id in received])
            for at in instants
        ],
        "lost": arguments.jobs * len(instants) - len(counted),
        "doubled": sum(counted.values()) - len(counted) + len(runs) - len(received),
    }


def round_of(lags: list[float]) -> dict[str, float]:
    """Return the delays in ms of the first and the last run of one instant."""
    return {
        "first_ms": round(min(lags, default=0), 1),
        "last_ms": round(max(lags, default=0), 1),
        "sent": len(lags),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3, help="warm rounds after the cold one")
    parser.add_argument("--executors", type=int, default=1)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
