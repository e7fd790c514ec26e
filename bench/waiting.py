"""Lag of jobs beside ``--waiting`` runs that wait for a limit, compared with none that wait.

On one installation windows with and without them take turns; a ratio is the median over pairs of neighbouring
windows, so that a machine that changes its speed affects both alike. The limit's only slot is held. Example:
``.venv/bin/python bench/waiting.py --db sqlite --waiting 10000``.
"""

import argparse
import time
from typing import Any

from harness import KINDS, Cluster, cluster, make_jobs
from sqlalchemy import delete, insert, select
from turns import ratios
from windows import Window, offer, start
from yardstick import report

from app.clock import DAY_MS
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit

#: pairs of windows after the first pair, which warms up
PAIRS = 5
#: fires of one statement
PAGE = 1_000
LIMITED, LIMIT_ID = "limited", 1


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    make_jobs(engine, arguments.jobs, cron="* * * * * ?", trigger_status=0)
    make_jobs(engine, 1, cron="* * * * * ?", trigger_status=0, job_desc=LIMITED, max_running=1)
    with engine.begin() as connection:
        job_id = connection.scalar(select(Job.id).where(Job.job_desc == LIMITED))
        connection.execute(insert(Limit), [{"id": LIMIT_ID, "kind": "job", "name": str(job_id)}])
    start(made)
    window = Window(arguments.jobs, arguments.seconds)
    alone: dict[str, list[float]] = {"p50": [], "p99": []}
    beside: dict[str, list[float]] = {"p50": [], "p99": []}
    yardsticks = []
    for number in range(PAIRS + 1):
        for figures, waiting in ((alone, 0), (beside, arguments.waiting)):
            set_waiting(made, waiting)
            result = offer(made, window)
            yardsticks.append(result["yardstick_ms"])
            assert not result["lost"] + result["doubled"] + result["unfinished"], result
            for name in figures if number else ():
                figures[name].append(result["lag_ms"][name])
    set_waiting(made, 0)
    return {
        "bench": "waiting",
        "yardstick_ms": round(sum(yardsticks) / len(yardsticks), 1),
        "db": arguments.db,
        "waiting": arguments.waiting,
        "jobs": arguments.jobs,
        "alone_lag_ms": alone,
        "beside_lag_ms": beside,
        "times": ratios(alone, beside, PAIRS),
    }


def set_waiting(made: Cluster, count: int) -> None:
    """Make so many fires wait for the limit, whose only slot is held; they are due later than the window."""
    now_ms = int(time.time() * 1000)
    with made.engine().begin() as connection:
        job_id = connection.scalar(select(Job.id).where(Job.job_desc == LIMITED))
        connection.execute(delete(Fire).where(Fire.job_id == job_id))
        row = {"job_id": job_id, "due_time": now_ms + DAY_MS, "trigger_type": "MANUAL", "admitted_ms": now_ms}
        if count:
            connection.execute(insert(Fire), [row | {"fire_key": "bench:held", "state": "HELD"}])
        rows = [
            row
            | {
                "fire_key": f"bench:{number}",
                "state": "WAITING",
                "admitted_ms": 0,
                "deadline_ms": now_ms + number,
                "lease_until": 2**62,
                "waits_for": f"{LIMIT_ID} full 1/1",
            }
            for number in range(count)
        ]
        for first in range(0, count, PAGE):
            connection.execute(insert(Fire), rows[first : first + PAGE])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=100, help="other jobs, due each second")
    parser.add_argument("--seconds", type=int, default=8)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
