"""Log archive beside dispatch: windows in which logs are archived take turns with windows in which none is.

``--jobs`` jobs due every second on executors with a log of 10 lines for each run, of which ``--hanging``
never answer ``/log``, and one run with a log of 1 GB. Prints one JSON line: by mode the lag and the CPU
milliseconds per trigger of all but the executors, as medians over the windows; ``p99_of_second``: that of the
runs of one second, as a median, since one slow second makes the p99 of a window; ``ratios``: those of the
windows with the archive to their neighbours without, as medians; and how far the logs of each window have
come. Example: ``.venv/bin/python bench/archive.py --jobs 300 --seconds 8 --pairs 4``.
"""

import argparse
import statistics
import time
from collections import defaultdict
from typing import Any

from harness import KINDS, Cluster, cluster, make_jobs, wait_until
from sqlalchemy import delete, func, insert, select, update
from stub_executor import BIG
from windows import Window, offer
from yardstick import report

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, transact
from app.domain.enums import FireState
from app.models.archive import LogArchive
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job

#: executors of the runs, each with a log of so many lines a run
EXECUTORS, LINES = 4, 10
OFF, ALL = "off", "all"
#: for the archiver to end what it does when nothing is archived any more
CALM_S = 3


def start(made: Cluster, arguments: argparse.Namespace) -> None:
    """Start the installation, and wait until all executors are registered."""
    made.start_console()
    for number in range(EXECUTORS):
        hangs = ["--log-hangs"] if number < arguments.hanging else []
        made.start_stub(f"stub{number}", options=["--log-lines", str(LINES), *hangs])
    made.start_stub("stub-big", appname=BIG)
    made.start_workers()

    def is_registered() -> bool:
        with read_scope() as session:
            lists = session.scalars(select(Group.address_list)).all()
        return sum(len(each.split(",")) for each in lists if each) == EXECUTORS + 1

    wait_until(is_registered, "the executors to register", made)
    time.sleep(CALM_S)


def begin(mode: str, big_id: int) -> None:
    """Change the mode of all jobs, delete what was archived; ``big_id``: job to trigger, 0: none."""
    transact(lambda session: session.execute(update(Job).values(log_archive=mode)))
    for model in (LogArchive, Fire):
        transact(lambda session, model=model: session.execute(delete(model)))
    if mode == ALL and big_id:
        at_ms = now_ms()
        fire = {"job_id": big_id, "fire_key": f"big:{at_ms}", "due_time": at_ms, "trigger_type": "MANUAL"}
        transact(lambda session: session.execute(insert(Fire).values(fire)))
        wait_until(_is_sent, "the run with the long log")
        # A window ends with the last run that was due by then.
        transact(lambda session: session.execute(update(Fire).values(due_time=at_ms + DAY_MS)))
    time.sleep(CALM_S)


def _is_sent() -> bool:
    with read_scope() as session:
        return session.scalar(select(Fire.state)) == FireState.ACCEPTED


def archived() -> dict[str, int]:
    """Return how many logs are in which state, how many lines they have, and those of the longest."""
    by_state = select(LogArchive.state, func.count()).group_by(LogArchive.state)
    lines = select(func.sum(LogArchive.last_line), func.max(LogArchive.last_line))
    with read_scope() as session:
        states: dict[str, int] = dict(session.execute(by_state).tuples().all())
        total, longest = session.execute(lines).one()
    return states | {"lines": int(total or 0), "longest": int(longest or 0)}


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    make_jobs(engine, arguments.jobs, cron="* * * * * ?", trigger_status=0)
    with engine.begin() as connection:
        connection.execute(insert(Group).values(app_name=BIG, title=BIG, address_type=0))
    columns = {"schedule_type": "NONE", "executor_handler": BIG, "job_desc": BIG, "trigger_status": 0}
    make_jobs(engine, 1, cron="", appname=BIG, **columns)
    with read_scope() as session:
        big_id = int(session.scalar(select(func.max(Job.id))) or 0) if arguments.big else 0
    start(made, arguments)
    window = Window(arguments.jobs, arguments.seconds)
    begin(OFF, 0)
    offer(made, window)  # The first one loads modules and prepares statements.
    turns, logs = defaultdict[str, list[dict[str, Any]]](list), list[dict[str, int]]()
    for _ in range(arguments.pairs):
        for mode in (OFF, ALL):
            begin(mode, big_id)
            turns[mode].append(offer(made, window))
        logs.append(archived())
    pairs = list(zip(map(compared, turns[OFF]), map(compared, turns[ALL]), strict=True))
    return {
        "bench": "archive",
        **{name: getattr(arguments, name) for name in ("db", "jobs", "seconds", "pairs", "hanging", "big")},
        **{mode: summary(figures) for mode, figures in turns.items()},
        "ratios": {
            name: round(statistics.median(on[name] / max(off[name], 0.1) for off, on in pairs), 2)
            for name in pairs[0][0]
        },
        "archived": logs,
    }


def compared(turn: dict[str, Any]) -> dict[str, float]:
    """Return the figures of a window that are compared."""
    lag = turn["lag_ms"]
    of_seconds = statistics.median(turn["p99_lag_ms_by_second"])
    cpu = turn["cpu_ms_per_trigger"]["sum"]
    return {"p50": lag["p50"], "p99": lag["p99"], "p99_of_second": of_seconds, "cpu": cpu}


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over windows, each p99, and how much happened that must not."""
    figures = [compared(turn) for turn in turns]
    medians = {name: round(statistics.median(each[name] for each in figures), 2) for name in figures[0]}
    wrong = sum(turn[name] for turn in turns for name in ("early", "lost", "doubled", "unfinished"))
    per_s = statistics.median(turn["triggers_per_s"] for turn in turns)
    return {**medians, "per_s": per_s, "each_p99": [each["p99"] for each in figures], "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--jobs", type=int, default=1_000, help="jobs due each second")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=4, help="windows of each mode")
    parser.add_argument("--hanging", type=int, default=1, help="executors that hang on /log")
    parser.add_argument("--no-big", dest="big", action="store_false", help="without the log of 1 GB")
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
