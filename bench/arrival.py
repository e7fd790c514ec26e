"""Latency of manual triggers, from POST to executor, idle and beside ``--load`` runs per second.

Prints one JSON line with percentiles in ms. Example:
``.venv/bin/python bench/arrival.py --db sqlite --triggers 60 --load 0``.
"""

import argparse
import random
import time
from typing import Any

import requests
from harness import KINDS, Cluster, cluster, make_jobs, percentile, read_runs, wait_until
from sqlalchemy import func, select
from yardstick import report

from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job

#: mean seconds between two triggers
APART_S = 0.3
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def login(made: Cluster) -> requests.Session:
    http = requests.Session()
    answer = http.post(
        f"{made.admin}/login", data={"userName": "admin", "password": "bench-password"}, timeout=10
    )
    assert answer.json()["code"] == 200, answer.text
    return http


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    made.start_console()
    made.start_stub()
    make_jobs(engine, 1, cron="0 0 0 1 1 ? 2099", trigger_status=0, job_desc="by hand")
    if arguments.load:
        make_jobs(engine, arguments.load, cron="* * * * * ?", first_ms=int(time.time() + 3) * 1000)
    made.start_workers()

    def registered() -> bool:
        with engine.connect() as connection:
            return bool(connection.scalar(select(Group.address_list)))

    wait_until(registered, "the executor to register", made)
    with engine.connect() as connection:
        job_id = connection.scalar(select(Job.id).where(Job.job_desc == "by hand"))
    http = login(made)
    waits = wait_for_each(made, http, job_id, arguments)
    made.stop("stub")
    return {
        "bench": "arrival",
        "db": arguments.db,
        "load": arguments.load,
        "triggers": len(waits),
        "ms": {name: percentile(waits, share) for name, share in SHARES.items()},
    }


def wait_for_each(
    made: Cluster, http: requests.Session, job_id: int | None, arguments: argparse.Namespace
) -> list[float]:
    """Trigger a job again and again after a first time; return the ms from each POST to its arrival."""
    engine = made.engine()

    def trigger() -> float:
        at_ms = time.time() * 1000
        answer = http.post(
            f"{made.admin}/jobinfo/trigger",
            data={"id": job_id, "executorParam": "", "addressList": ""},
            timeout=10,
        )
        assert answer.json()["code"] == 200, answer.text
        return at_ms

    def finished() -> bool:
        with engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(Fire).where(Fire.job_id == job_id)) == 0

    triggered = [trigger()]
    wait_until(finished, "the first result", made, timeout_s=60)  # the workers are running
    time.sleep(arguments.warm_up)
    dice = random.Random(1)
    for _ in range(arguments.triggers):
        time.sleep(dice.uniform(0.5, 1.5) * APART_S)
        triggered.append(trigger())
    wait_until(finished, "all results", made, timeout_s=60)
    made.dump_runs()
    arrived = sorted(at_ms for _, of_job, at_ms in read_runs(made.home / "stub.jsonl") if of_job == job_id)
    return [at - since for since, at in zip(triggered, arrived, strict=True)][1:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--triggers", type=int, default=60)
    parser.add_argument("--load", type=int, default=0, help="scheduled runs a second beside them")
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds before the first trigger")
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
