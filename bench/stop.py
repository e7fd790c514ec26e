"""Stops with runs in flight: the time from SIGTERM to the end of each process, and what becomes of the runs.

For workers, console and executor in turn, ``--runs`` runs of ``--seconds`` start at one instant. When all are
running, the process gets SIGTERM; when it has ended it is started again. Prints one JSON line: per process
the seconds from SIGTERM to the end, its exit code, and the runs by trigger code and handle code once all have
a result. ``.venv/bin/python bench/stop.py --db sqlite --runs 200``.
"""

import argparse
import time

from harness import KINDS, TOKEN, Cluster, cluster, free_port, make_jobs, wait_until
from sqlalchemy import Engine, func, select, update
from yardstick import report

from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog

#: time from enabling the jobs to their instant
LEAD_S = 7
#: time for all runs to start, and for the last result after the last run has ended
ALL_S = 60


def start_executor(made: Cluster, port: int) -> None:
    options = {"--admin": made.admin, "--appname": "bench", "--port": port, "--home": made.home / "executor"}
    arguments = [str(part) for pair in options.items() for part in pair]
    made.start(
        "executor", "-m", "executor_client", "executor_client.demo", *arguments, XXL_JOB_ACCESS_TOKEN=TOKEN
    )


def count(engine: Engine, *conditions: object) -> int:
    with engine.connect() as connection:
        counted = select(func.count()).select_from(JobLog)
        return connection.scalar(counted.where(*conditions)) or 0  # type: ignore[arg-type]


def fire_all(engine: Engine, first_id: int) -> None:
    """Let every job with an id from there on fire once."""
    at_ms = (int(time.time()) + LEAD_S) * 1000
    once = {"trigger_status": 1, "trigger_next_time": at_ms, "not_after_ms": at_ms}
    with engine.begin() as connection:
        connection.execute(update(Job).where(Job.id >= first_id).values(once))


def stop(made: Cluster, engine: Engine, name: str, runs: int) -> dict[str, object]:
    """Stop one process while all runs are in flight; return what it took and what became of the runs."""
    before = count(engine)
    fire_all(engine, 1)
    running = (JobLog.trigger_code == 200, JobLog.handle_code == 0)
    wait_until(lambda: count(engine, *running) == runs, "all runs to start", made, timeout_s=ALL_S)
    process = made.processes.pop(name)
    began = time.monotonic()
    process.terminate()
    process.wait(ALL_S)
    took_s = time.monotonic() - began
    left = count(engine, *running)
    restart = {"workers": made.start_workers, "console": made.start_console}
    if name in restart:
        restart[name]()
    else:
        start_executor(made, free_port())
    wait_until(lambda: count(engine, *running) == 0, "all results", made, timeout_s=2 * ALL_S)
    codes = (JobLog.trigger_code, JobLog.handle_code)
    with engine.connect() as connection:
        newest = select(JobLog.id).order_by(JobLog.id.desc()).limit(runs).subquery()
        rows = connection.execute(
            select(*codes, func.count()).where(JobLog.id.in_(select(newest.c.id))).group_by(*codes)
        )
        results = {f"{trigger}/{handle}": number for trigger, handle, number in rows}
    return {
        "stop_s": round(took_s, 2),
        "exit_code": process.returncode,
        "in_flight_at_the_end": left,
        "runs": count(engine) - before,
        "results": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=20, help="how long each run takes")
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        engine = made.engine()
        made.start_console()
        start_executor(made, free_port())
        made.start_workers()
        make_jobs(
            engine,
            arguments.runs,
            cron="* * * * * ?",
            trigger_status=0,
            executor_handler="sleepJobHandler",
            executor_param=str(arguments.seconds),
        )

        def registered() -> bool:
            with engine.connect() as connection:
                return bool(connection.scalar(select(Group.address_list)))

        wait_until(registered, "the executor to register", made)
        stops = {
            name: stop(made, engine, name, arguments.runs) for name in ("workers", "console", "executor")
        }
        report("stop", db=arguments.db, runs=arguments.runs, **stops)


if __name__ == "__main__":
    main()
