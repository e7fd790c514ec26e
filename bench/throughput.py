"""Throughput, end to end: ``--jobs`` jobs due every second for ``--seconds``, results in batches.

Prints one JSON line: triggers per second (results stored per second of schedule), CPU milliseconds per
trigger by process, lag (received by the executor minus the scheduled instant), growth of the database by run,
rows lost and doubled.
Example:
``.venv/bin/python bench/throughput.py --db sqlite --jobs 1000 --seconds 20 --batch 50``.
"""

import argparse
from typing import Any

from harness import KINDS, Cluster, cluster, database_bytes, make_jobs
from windows import Window, offer, start
from yardstick import report


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    make_jobs(engine, arguments.jobs, cron="* * * * * ?", trigger_status=0)
    start(made, executors=arguments.executors, nodes=arguments.nodes, batch=arguments.batch)
    bytes_before = database_bytes(engine)
    figures = offer(made, Window(arguments.jobs, arguments.seconds))
    grown = database_bytes(engine) - bytes_before
    runs = arguments.jobs * arguments.seconds - figures["lost"] + figures["doubled"]
    return {
        "bench": "throughput",
        "db": arguments.db,
        "jobs": arguments.jobs,
        "seconds": arguments.seconds,
        "batch": arguments.batch,
        "nodes": arguments.nodes,
        "executors": arguments.executors,
        **figures,
        "bytes_per_run": round(grown / max(runs, 1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--jobs", type=int, default=100, help="jobs due each second")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=50, help="results of one callback request")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--executors", type=int, default=1)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
