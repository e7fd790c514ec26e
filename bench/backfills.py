"""Backfills: instants a second, and the lag of live jobs beside one, compared with none.

``rate``: a backfill of ``--instants`` past instants alone, by its ``max_running``. ``lag``: on the same
installation windows of ``--jobs`` jobs due each second, with and without a backfill that goes on beside them,
take turns; a ratio is the median over pairs of neighbouring windows, so that a machine that changes its speed
affects both alike. ``idle``: CPU beside none, and beside ``--idle`` backfills of one run that does not end,
which then are paused. ``step``: CPU microseconds of an instant in this process, by the stages of its run and
the step that starts the next ones. Example:
``.venv/bin/python bench/backfills.py rate --db sqlite``.
"""

import argparse
import statistics
import time
from functools import partial
from typing import Any

from harness import KINDS, TOKEN, Cluster, cluster, make_jobs, wait_until
from rounds import run_batch
from sqlalchemy import Engine, select, update
from stages import NODE, Stopwatch
from turns import ratios
from windows import Window, offer, start
from yardstick import Yardstick, report

from app.clock import DAY_MS, SECOND_MS, now_ms
from app.database.engine import read_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.backfills.kinds import BackfillState
from app.domain.runs.routing import RouteState
from app.domain.schedules.planning import DueFire
from app.models.backfill import Backfill
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.pipeline.claimed_run import Claimer
from app.services.backfills.backfills import BackfillDraft, cancel_backfill, pause_backfill, start_backfill
from app.services.backfills.steps import advance

PAST = "past"
ACTOR = system_actor("bench")
#: pairs of windows after the first pair, which warms up
PAIRS = 5
#: longest time of a backfill
LIMIT_S = 1_800
#: steps that are measured
STEPS = 30
#: until nothing but the backfills uses CPU
SETTLE_S = 5


def make_past_jobs(made: Cluster, count: int) -> list[int]:
    """Insert jobs that run each second, but whose switch is off; return their ids."""
    make_jobs(made.engine(), count, cron="* * * * * ?", trigger_status=0, job_desc=PAST)
    with made.engine().connect() as connection:
        return list(connection.scalars(select(Job.id).where(Job.job_desc == PAST).order_by(Job.id)))


def begin(job_id: int, instants: int, max_running: int, *, day: int = 2) -> int:
    """Start a backfill of so many instants, ``day`` days ago; return its id."""
    from_ms = now_ms() // SECOND_MS * SECOND_MS - day * DAY_MS
    draft = BackfillDraft(from_ms, from_ms + instants * SECOND_MS, max_running=max_running)
    options: dict[str, Any] = {"actor": ACTOR, "zone": "UTC", "shared_with_java": False, "clock": now_ms}
    return transact(lambda session: start_backfill(session, job_id, draft, **options))


def state_of(backfill_id: int) -> str:
    with read_scope() as session:
        return session.scalar(select(Backfill.state).where(Backfill.id == backfill_id)) or ""


def is_done(backfill_id: int) -> bool:
    return state_of(backfill_id) == BackfillState.DONE


def end(backfill_id: int, made: Cluster) -> None:
    """Cancel a backfill, and wait until nothing of it is left."""
    assert state_of(backfill_id) == BackfillState.RUNNING, "the backfill ended too early"
    transact(partial(cancel_backfill, backfill_id=backfill_id, actor=ACTOR, clock=now_ms))
    wait_until(lambda: state_of(backfill_id) == BackfillState.CANCELLED, "the backfill to end", made)


def measure_rate(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    [job_id] = make_past_jobs(made, 1)
    start(made)
    rates = {}
    for max_running in map(int, arguments.max_running.split(",")):
        before, began_s = made.cpu_seconds(), time.monotonic()
        with Yardstick() as yardstick:
            backfill_id = begin(job_id, arguments.instants, max_running)
            wait_until(partial(is_done, backfill_id), "the backfill", made, timeout_s=LIMIT_S)
        took_s, after = time.monotonic() - began_s, made.cpu_seconds()
        used = {name: round((after[name] - before[name]) / took_s, 2) for name in after}
        per_s = round(arguments.instants / took_s, 1)
        rates[max_running] = {"per_s": per_s, "cores": used, "yardstick_ms": yardstick.ms}
    return {"instants": arguments.instants, "rates": rates}


def measure_lag(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    make_jobs(made.engine(), arguments.jobs, cron="* * * * * ?", trigger_status=0)
    [job_id] = make_past_jobs(made, 1)
    start(made, run_ms=arguments.run_ms)
    window = Window(arguments.jobs, arguments.seconds)
    alone: dict[str, list[float]] = {"p50": [], "p99": []}
    beside: dict[str, list[float]] = {"p50": [], "p99": []}
    for number in range(PAIRS + 1):
        for figures in (alone, beside):
            backfill_id = 0
            if figures is beside:
                backfill_id = begin(job_id, arguments.instants, int(arguments.max_running))
            result = offer(made, window)
            if backfill_id:
                end(backfill_id, made)
            assert not result["lost"] + result["doubled"] + result["unfinished"], result
            for name in figures if number else ():
                figures[name].append(result["lag_ms"][name])
    return {
        "jobs": arguments.jobs,
        "max_running": arguments.max_running,
        "run_ms": arguments.run_ms,
        "alone_lag_ms": alone,
        "beside_lag_ms": beside,
        "times": ratios(alone, beside, PAIRS),
    }


def measure_idle(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    job_ids = make_past_jobs(made, arguments.idle)
    start(made, run_ms=LIMIT_S * 1000)
    found = {"none": _cores(made, arguments.seconds)}
    backfill_ids = [begin(job_id, 10, 1) for job_id in job_ids]
    time.sleep(SETTLE_S)
    found["running"] = _cores(made, arguments.seconds)
    for backfill_id in backfill_ids:
        transact(partial(pause_backfill, backfill_id=backfill_id, actor=ACTOR, clock=now_ms))
    time.sleep(SETTLE_S)
    found["paused"] = _cores(made, arguments.seconds)
    return {"backfills": arguments.idle, "cores": found}


def measure_step(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    with engine.begin() as connection:
        connection.execute(update(Group).values(address_type=1, address_list="http://127.0.0.1:9/"))
    claimer = Claimer(NODE, "UTC", (TOKEN,), 60_000, 3_000, RouteState(), lambda _address: 100_000)
    sizes = [int(size) for size in arguments.max_running.split(",")]
    found = {}
    for job_id, size in zip(make_past_jobs(made, len(sizes)), sizes, strict=True):
        backfill_id = begin(job_id, (STEPS + 2) * size, size)
        taken = [_take_step(engine, claimer, backfill_id) for _ in range(STEPS + 1)][
            1:
        ]  # The first compiles.
        medians = {stage: statistics.median(each[stage] for each in taken) / size for stage in taken[0]}
        found[size] = {stage: round(us) for stage, us in medians.items()}
        end(backfill_id, made)
    return {"cpu_us": found}


def _take_step(engine: Engine, claimer: Claimer, backfill_id: int) -> dict[str, float]:
    """Let the runs of a backfill end, and start the next ones; return the CPU microseconds."""
    with engine.connect() as connection:
        rows = connection.execute(select(Fire.id, Fire.job_id, Fire.due_time))
        fires = [DueFire(*row) for row in rows]
    took = run_batch(claimer, fires)
    watch = Stopwatch()
    watch.of("step", lambda: advance(backfill_id, clock=now_ms))
    return took | watch.took_us


def _cores(made: Cluster, seconds: int) -> dict[str, float]:
    before = made.cpu_seconds()
    time.sleep(seconds)
    after = made.cpu_seconds()
    return {name: round((after[name] - before[name]) / seconds, 4) for name in after}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measures = {"rate": measure_rate, "lag": measure_lag, "idle": measure_idle, "step": measure_step}
    parser.add_argument("what", choices=measures)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--instants", type=int, default=10_000)
    parser.add_argument("--max-running", default="", help="of the backfill; rate, step: several, with commas")
    parser.add_argument("--jobs", type=int, default=100, help="lag: live jobs, due each second")
    parser.add_argument("--seconds", type=int, default=8, help="of a window")
    parser.add_argument("--run-ms", type=int, default=0, help="lag: how long all runs take")
    parser.add_argument("--idle", type=int, default=100, help="idle: how many backfills")
    arguments = parser.parse_args()
    arguments.max_running = arguments.max_running or ("20" if arguments.what == "lag" else "1,20,100")
    with cluster(arguments.db) as made:
        report("backfills", db=arguments.db, what=arguments.what, **measures[arguments.what](made, arguments))


if __name__ == "__main__":
    main()
