"""Cost of a run for the dispatching process: claim, send and record of ``--jobs`` due fires.

Prints one JSON line: per round the CPU microseconds of this process per run, and the milliseconds until all
were sent and recorded. CPU time is steadier than wall time on a shared machine. Example:
``.venv/bin/python bench/dispatch.py --jobs 5000``.
"""

import argparse
import gc
import sys
import threading
import time
from typing import Any

from harness import KINDS, TOKEN, Cluster, cluster, free_port
from sqlalchemy import Engine, func, insert, select
from yardstick import report

from app.clock import now_ms
from app.database.engine import read_scope
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from workers.dispatch.dispatcher import Dispatcher
from workers.scheduler import GC_THRESHOLDS, SWITCH_INTERVAL_S

NODE = "bench"
#: between two checks for the last outcome
CHECK_S = 0.05


def make_rows(engine: Engine, jobs: int, port: int) -> None:
    moment = now_ms()
    address = f"http://127.0.0.1:{port}/"
    group = {
        "id": 77,
        "app_name": "bench",
        "title": "b",
        "address_type": 1,
        "address_list": address,
        "update_time": moment,
    }
    job = {
        "job_group": 77,
        "job_desc": "bench",
        "author": "bench",
        "schedule_type": "NONE",
        "executor_route_strategy": "ROUND",
        "executor_handler": "demo",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "glue_type": "BEAN",
        "add_time": moment,
        "update_time": moment,
        "glue_updatetime": moment,
    }
    with engine.begin() as connection:
        connection.execute(insert(Group), [group])
        connection.execute(insert(Job), [{"id": number, **job} for number in range(1, jobs + 1)])


def make_herd(engine: Engine, jobs: int) -> list[DueFire]:
    """Insert a PENDING fire for every job, all due now."""
    moment = now_ms()
    fire = {"due_time": moment, "trigger_type": "CRON", "state": "PENDING", "owner": NODE}
    rows = [
        {"job_id": number, "fire_key": f"cron:{number}:{moment}", **fire} for number in range(1, jobs + 1)
    ]
    with engine.begin() as connection:
        connection.execute(insert(Fire), rows)
        return [
            DueFire._make(row)
            for row in connection.execute(
                select(Fire.id, Fire.job_id, Fire.due_time).where(Fire.state == "PENDING")
            )
        ]


def count_left() -> int:
    """Return the number of fires without an outcome; only reads, so that no SQLite writer waits."""
    with read_scope() as session:
        return session.scalar(select(func.count()).select_from(Fire).where(Fire.state != "ACCEPTED")) or 0


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine, port = made.engine(), free_port()
    out = made.home / "stub.jsonl"
    made.start(
        "stub",
        "bench/stub_executor.py",
        "--port",
        str(port),
        "--admin",
        "http://127.0.0.1:1/none",
        "--token",
        TOKEN,
        "--out",
        str(out),
    )
    make_rows(engine, arguments.jobs, port)
    dispatcher = Dispatcher(made.config, node=NODE, tokens=(TOKEN,))
    dispatcher.start()
    gc.freeze()
    pause, rounds = threading.Event(), []
    for _ in range(arguments.rounds):
        due = make_herd(engine, arguments.jobs)
        began_cpu, began = time.process_time(), time.perf_counter()
        dispatcher.offer(due)
        while count_left():
            pause.wait(CHECK_S)
        rounds.append(
            {
                "cpu_us": round((time.process_time() - began_cpu) / arguments.jobs * 1e6),
                "wall_ms": round((time.perf_counter() - began) * 1000),
            }
        )
    dispatcher.stop()
    return {"bench": "dispatch", "db": arguments.db, "jobs": arguments.jobs, "rounds": rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
