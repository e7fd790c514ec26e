"""Cost of an arrival: the end of a run whose job others run after, compared with one that nothing follows.

``--rounds`` rounds of ``--predecessors`` jobs each, in this process: instants of the same jobs with and
without followers take turns, in batches of ``--size`` runs. ``spread``: each run of a batch arrives in
another round; ``gathered``: all runs of a round are in one batch. ``share``: what an arrival adds, of the
cost of a trigger without (claim, record and callback); the median over pairs of neighbouring turns. CPU time
of this process: the database server's is not in it. Example: ``.venv/bin/python bench/rounds.py``.
"""

import argparse
import gc
import json
import statistics
from collections.abc import Sequence
from typing import Any

from harness import KINDS, TOKEN, cluster, make_jobs
from sqlalchemy import Engine, delete, func, insert, select, update
from stages import NODE, Stopwatch
from yardstick import report

from app.clock import now_ms
from app.database.engine import transact
from app.domain.executors.token_scope import TokenScope
from app.domain.runs.evidence import Fate, Verdict
from app.domain.runs.routing import RouteState
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.round import After, Round
from app.pipeline.claim import claim
from app.pipeline.claimed_run import ClaimedRun, Claimer
from app.pipeline.record import record
from app.pipeline.scan import scan
from app.pipeline.send import SendOutcome
from app.services.runs.callbacks import Batch, _store
from executor_client.wire.callbacks import CallbackItem
from workers.scheduler import GC_THRESHOLDS

STAGES = ("claim", "record", "callback")


def make_followers(engine: Engine, followers: int, predecessors: int) -> None:
    """Insert so many jobs, each with its own predecessors, whose ids are the lower ones."""
    make_jobs(engine, followers * predecessors, cron="0 0 0 1 1 ? 2099", trigger_status=0)
    make_jobs(engine, followers, cron="", trigger_status=0, schedule_type="NONE")
    with engine.begin() as connection:
        connection.execute(update(Group).values(address_type=1, address_list="http://127.0.0.1:9/"))
        ids = list(connection.scalars(select(Job.id).order_by(Job.id)))
        for number in range(followers):
            job_id = ids[followers * predecessors + number]
            after = ids[number * predecessors : (number + 1) * predecessors]
            value = json.dumps({"jobs": after})
            connection.execute(update(Job).where(Job.id == job_id).values(runs_after=value))
            connection.execute(insert(After), [{"job_id": job_id, "predecessor_id": each} for each in after])


def in_batches(fires: Sequence[DueFire], *, predecessors: int, size: int, order: str) -> list[list[DueFire]]:
    """Return the fires of an instant in batches, by follower, or by the number of the predecessor."""
    ordered = sorted(fires, key=lambda fire: fire.job_id)
    if order == "spread":
        ordered = [fire for first in range(predecessors) for fire in ordered[first::predecessors]]
    return [ordered[first : first + size] for first in range(0, len(ordered), size)]


def run_once(
    engine: Engine, claimer: Claimer, arguments: argparse.Namespace, order: str, *, has_followers: bool
) -> dict[str, float]:
    """Bring an instant of all predecessors through the stages; return the CPU microseconds of a run."""
    count = arguments.followers * arguments.predecessors
    with engine.begin() as connection:
        values = {"trigger_status": 1, "trigger_next_time": now_ms(), "has_followers": int(has_followers)}
        connection.execute(update(Job).where(Job.schedule_type == "CRON").values(values))
    due: list[DueFire] = []
    while len(due) < count:
        due += scan(node=NODE, zone="UTC", now_ms=now_ms())
    took = dict.fromkeys(STAGES, 0.0)
    for batch in in_batches(due, predecessors=arguments.predecessors, size=arguments.size, order=order):
        for stage, us in run_batch(claimer, batch).items():
            took[stage] += us / count
    with engine.begin() as connection:
        started = connection.scalar(select(func.count()).where(Fire.trigger_type == "AFTER"))
        assert started == (arguments.followers if has_followers else 0), started
        connection.execute(delete(Fire))
    return took


def run_batch(claimer: Claimer, fires: Sequence[DueFire]) -> dict[str, float]:
    """Bring fires through the stages; return the CPU microseconds of each."""
    watch, claimed_by = Stopwatch(), now_ms() + 5_000
    batch = watch.of(
        "claim", lambda: transact(lambda session: claim(session, fires, claimer, now_ms=claimed_by))
    )
    assert len(batch.claimed) == len(fires), len(batch.claimed)
    accepted = Verdict(Fate.ACCEPTED, 200, "")
    sents = [SendOutcome(run, accepted, ("Result: accepted",), 3) for run in batch.claimed]
    watch.of("record", lambda: transact(lambda session: record(session, sents, node=NODE, now_ms=now_ms())))
    request = Batch(tuple(map(_item, batch.claimed)), TokenScope(is_global=True))
    stored = watch.of("callback", lambda: transact(lambda session: _store(session, [request])))
    assert stored[0].won == len(fires), stored
    return watch.took_us


def _item(run: ClaimedRun) -> CallbackItem:
    return CallbackItem(run.log_id, run.request.log_date_time, 200, None)


def measure(engine: Engine, arguments: argparse.Namespace, order: str) -> dict[str, Any]:
    claimer = Claimer(NODE, "UTC", (TOKEN,), 60_000, 3_000, RouteState(), lambda _address: 100_000)
    turns = max(arguments.rounds // arguments.followers, 1)
    pairs = []
    for number in range(turns + 1):
        without = run_once(engine, claimer, arguments, order, has_followers=False)
        followed = run_once(engine, claimer, arguments, order, has_followers=True)
        if number:  # The first pair compiles the statements.
            pairs.append((without, followed))
        gc.collect()
    added = [after["callback"] - before["callback"] for before, after in pairs]
    triggers = [sum(before.values()) for before, _ in pairs]
    return {
        "trigger_us": round(statistics.median(triggers)),
        "callback_us": round(statistics.median(before["callback"] for before, _ in pairs)),
        "arrival_us": round(statistics.median(added), 1),
        "share": round(statistics.median(a / b for a, b in zip(added, triggers, strict=True)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--followers", type=int, default=100, help="jobs that run after others")
    parser.add_argument("--predecessors", type=int, default=20, help="of each follower")
    parser.add_argument("--size", type=int, default=100, help="runs of a batch")
    arguments = parser.parse_args()
    gc.set_threshold(*GC_THRESHOLDS)
    with cluster(arguments.db) as made:
        engine = made.engine()
        make_followers(engine, arguments.followers, arguments.predecessors)
        orders = {order: measure(engine, arguments, order) for order in ("spread", "gathered")}
        with engine.connect() as connection:
            count = connection.scalar(select(func.count()).select_from(Round))
        report("rounds", db=arguments.db, rounds=count, predecessors=arguments.predecessors, **orders)


if __name__ == "__main__":
    main()
