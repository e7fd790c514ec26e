"""Memory and CPU at rest: an installation with one job every ten seconds, measured after ``--seconds``.

Prints one JSON line: per process USS, RSS and PSS in MB after that time, the CPU seconds a minute at the end,
and the connections to a database server. ``.venv/bin/python bench/at_rest.py --db sqlite --seconds 600``.
"""

import argparse
import time
from typing import Any

import psutil
from harness import KINDS, Cluster, cluster, free_port, make_jobs, wait_until
from soak import MB, find_processes
from sqlalchemy import select, text
from stop import start_executor
from yardstick import report

from app.models.group import Group

#: the end of the run in which CPU time is measured
LAST_S = 60
CONNECTIONS = {
    "mariadb": "SELECT COUNT(*) FROM information_schema.processlist WHERE user NOT IN ('system user')",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
}


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def connections(made: Cluster, kind: str) -> int | None:
    """Return the connections of the processes, without the one that counts."""
    if kind not in CONNECTIONS:
        return None
    with made.engine().connect() as connection:
        return int(connection.scalar(text(CONNECTIONS[kind])) or 0) - 1


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    made.start_console()
    start_executor(made, free_port())
    made.processes["stub"] = made.processes["executor"]  # as ``find_processes`` calls it
    made.start_workers()
    columns = {"executor_handler": "demoJobHandler", "trigger_status": 0}
    make_jobs(engine, 1, cron="0/10 * * * * ?", **columns)

    def registered() -> bool:
        with engine.connect() as connection:
            return bool(connection.scalar(select(Group.address_list)))

    wait_until(registered, "the executor to register", made)
    with engine.begin() as connection:
        now_ms = int(time.time() * 1000)
        connection.execute(
            text(f"UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = {now_ms + 10_000}")
        )
    processes = find_processes(made)
    processes["executor"] = processes.pop("stub")
    del made.processes["stub"]
    time.sleep(max(arguments.seconds - LAST_S, 0))
    before = {name: cpu_s(process) for name, process in processes.items()}
    last_s = min(LAST_S, arguments.seconds)
    time.sleep(last_s)
    found: dict[str, dict[str, float]] = {}
    for name, process in processes.items():
        memory = process.memory_full_info()
        found[name] = {
            "uss_mb": round(memory.uss / MB, 1),
            "rss_mb": round(memory.rss / MB, 1),
            "pss_mb": round(memory.pss / MB, 1),
            "cpu_s_per_min": round((cpu_s(process) - before[name]) * 60 / last_s, 2),
        }
    return {
        "bench": "at_rest",
        "db": arguments.db,
        "seconds": arguments.seconds,
        "connections": connections(made, arguments.db),
        "processes": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--seconds", type=int, default=600)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
