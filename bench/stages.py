"""Cost of the stages of a run, in this process: scan, claim, record and callback, by the size of a batch.

Prints one JSON line: CPU microseconds per run of each stage, the median of ``--rounds``, and the yardstick of
the machine. CPU time is steadier than wall time on a shared machine; the database server's is not in it.
Example: ``.venv/bin/python bench/stages.py --sizes 20,100,500``. ``--parameter '${time-1d:yyyy-MM-dd}'``
gives all jobs a parameter in which placeholders are filled in.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

from harness import KINDS, TOKEN, cluster, make_jobs
from sqlalchemy import Engine, delete, update
from yardstick import report

from app.clock import now_ms
from app.database.engine import transact
from app.domain.executors.token_scope import TokenScope
from app.domain.runs.evidence import Fate, Verdict
from app.domain.runs.routing import RouteState
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.pipeline.claim import claim
from app.pipeline.claimed_run import Claimer
from app.pipeline.record import record
from app.pipeline.scan import scan
from app.pipeline.send import SendOutcome
from app.services.runs.callbacks import Batch, _store
from executor_client.wire.callbacks import CallbackItem
from workers.scheduler import GC_THRESHOLDS

NODE = "bench"
STAGES = ("scan", "claim", "record", "callback")
T = TypeVar("T")


class Stopwatch:
    """CPU time of this process, by stage."""

    def __init__(self) -> None:
        self.took_us: dict[str, float] = {}

    def of(self, stage: str, work: Callable[[], T]) -> T:
        began = time.process_time_ns()
        result = work()
        self.took_us[stage] = (time.process_time_ns() - began) / 1000
        return result


def run_once(engine: Engine, claimer: Claimer, count: int) -> dict[str, float]:
    """Bring ``count`` runs through all stages; return the CPU microseconds of each stage."""
    with engine.begin() as connection:
        due = Job.id <= count
        connection.execute(update(Job).where(due).values(trigger_status=1, trigger_next_time=now_ms()))
        connection.execute(update(Job).where(~due).values(trigger_status=0, trigger_next_time=0))
    watch, claimed_by = Stopwatch(), now_ms() + 5_000
    fires = watch.of("scan", lambda: scan(node=NODE, zone="UTC", now_ms=now_ms()))
    assert len(fires) == count, len(fires)
    batch = watch.of(
        "claim", lambda: transact(lambda session: claim(session, fires, claimer, now_ms=claimed_by))
    )
    accepted = Verdict(Fate.ACCEPTED, 200, "")
    sents = [SendOutcome(run, accepted, ("Result: accepted",), 3) for run in batch.claimed]
    assert len(sents) == count, len(sents)
    watch.of("record", lambda: transact(lambda session: record(session, sents, node=NODE, now_ms=now_ms())))
    items = tuple(CallbackItem(run.log_id, run.request.log_date_time, 200, None) for run in batch.claimed)
    request = Batch(items, TokenScope(is_global=True))
    stored = watch.of("callback", lambda: transact(lambda session: _store(session, [request])))
    assert stored[0].won == count, stored
    with engine.begin() as connection:
        connection.execute(delete(Fire))
    return watch.took_us


def measure(
    engine: Engine, sizes: list[int], rounds: int, parameter: str | None
) -> dict[str, dict[str, int]]:
    make_jobs(engine, max(sizes), cron="0 0 0 1 1 ? 2099", trigger_status=0)
    with engine.begin() as connection:
        connection.execute(update(Group).values(address_type=1, address_list="http://127.0.0.1:9/"))
        if parameter is not None:
            connection.execute(update(Job).values(executor_param=parameter, fill_parameter=1))
    claimer = Claimer(NODE, "UTC", (TOKEN,), 60_000, 3_000, RouteState(), lambda _address: 100_000)
    run_once(engine, claimer, min(sizes))  # compiles the statements
    gc.freeze()
    found: dict[str, dict[str, int]] = {}
    for size in sizes:
        took = [run_once(engine, claimer, size) for _ in range(rounds)]
        of_stages = {stage: statistics.median(one[stage] for one in took) / size for stage in STAGES}
        found[str(size)] = {stage: round(us) for stage, us in of_stages.items()}
        found[str(size)]["sum"] = round(sum(of_stages.values()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--sizes", default="1,20,100,500")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--parameter", help="of all jobs, with placeholders; default: their own, as it is")
    arguments = parser.parse_args()
    gc.set_threshold(*GC_THRESHOLDS)
    with cluster(arguments.db) as made:
        sizes = [int(text) for text in arguments.sizes.split(",")]
        cpu_us = measure(made.engine(), sizes, arguments.rounds, arguments.parameter)
        report("stages", db=arguments.db, cpu_us=cpu_us)


if __name__ == "__main__":
    main()
