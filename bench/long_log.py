"""Runs beside a log of ``--rows`` rows, compared with runs beside a short one.

Both databases exist at once and take short turns; a ratio is the median over pairs of neighbouring turns, so
that a machine that changes its speed affects both alike. First the stages, in this process: each batch is of
other jobs, so that every run changes another page of the log's index by job; ``all`` is the mean time of a
batch of all turns, with SQLite's checkpoints. Then whole installations at LOAD triggers a second: CPU of a
trigger, and lag. The runs of a turn are deleted after it, or the short log would grow. Example:
``.venv/bin/python bench/long_log.py --db mariadb --rows 1000000``.
"""

import argparse
import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import lists
import pages
from harness import KINDS, Cluster, cluster
from sqlalchemy import delete, text, update
from turns import ratios
from windows import Window, offer, start
from yardstick import report

from app.database.engine import transact
from app.domain.enums import TriggerType
from app.domain.runs.evidence import Fate, Verdict
from app.domain.runs.routing import RouteState
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.claim import claim
from app.pipeline.claimed_run import Claimer
from app.pipeline.complete import callback_result, complete
from app.pipeline.record import record
from app.pipeline.scan import scan
from app.pipeline.send import SendOutcome
from app.store.fires import queue as fires
from app.store.fires.queue import NewFire

SHORT = 1_000
#: runs of a batch, as in a busy second
BATCH = 100
#: turns of each database, batches of a turn, and batches before they count: after ten, psycopg has prepared
#: the statements and PostgreSQL has chosen their plans
TURNS, BATCHES, WARM_UP = 24, 4, 10
#: triggers a second of the installations, seconds of a window, and windows of each after the first
LOAD, WINDOW_S, WINDOWS = 1_000, 8, 6
STAGES = ("scan", "claim", "record", "callback")
#: maintenance that a server would do later, after many new rows, by dialect
AFTERWARDS = {
    "mysql": ("FLUSH TABLES xxl_job_log FOR EXPORT", "UNLOCK TABLES"),  # writes all its changed pages
    "postgresql": ("VACUUM ANALYZE", "CHECKPOINT"),
}
T = TypeVar("T")


@dataclass
class Log:
    """A database with a log of some rows, and what its batches took, in ms by stage and for ``all``."""

    made: Cluster
    rows: int
    filled_s: float = 0.0
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: CPU time of this process
    used: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def fill(self) -> None:
        """Fill the log; what the server does about it later is done at once."""
        engine = self.made.engine()
        self.filled_s = lists.prepare(engine, self.rows)
        if statements := AFTERWARDS.get(engine.dialect.name):
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for statement in statements:
                    connection.execute(text(statement))

    def take_turn(self, claimer: Claimer, batches: Iterator[int]) -> None:
        """Run batches of fires, then delete their runs."""
        self.made.engine()  # binds this process to it
        for _ in range(WARM_UP):
            self.run_batch(claimer, next(batches))
        for figures in (self.took, self.used):
            for stage in STAGES:
                del figures[stage][-WARM_UP:]
        began, used = time.perf_counter(), time.process_time()
        for _ in range(BATCHES):
            self.run_batch(claimer, next(batches))
        self.took["all"].append((time.perf_counter() - began) * 1000 / BATCHES)
        self.used["all"].append((time.process_time() - used) * 1000 / BATCHES)
        self.forget_runs()

    def forget_runs(self) -> None:
        """Delete the runs of a turn."""
        with self.made.engine().begin() as connection:
            connection.execute(delete(JobLog).where(JobLog.id > self.rows))

    def run_batch(self, claimer: Claimer, number: int) -> None:
        """Bring BATCH fires of other jobs than the last batch through the stages."""
        now_ms = time.time_ns() // 1_000_000
        first = number * BATCH % lists.JOBS
        jobs = range(first + 1, first + BATCH + 1)
        new = [NewFire(f"bench:{job}:{number}", job, now_ms, TriggerType.CRON) for job in jobs]
        due = transact(lambda session: fires.insert_fires(session, new))
        self.timed("scan", lambda: scan(node="bench", zone="UTC", now_ms=now_ms))
        batch = self.timed(
            "claim", lambda: transact(lambda session: claim(session, due, claimer, now_ms=now_ms))
        )
        assert len(batch.claimed) == BATCH, len(batch.claimed)
        sents = [SendOutcome(run, Verdict(Fate.ACCEPTED, 200, ""), (), 1) for run in batch.claimed]
        self.timed(
            "record", lambda: transact(lambda session: record(session, sents, node="bench", now_ms=now_ms))
        )
        results = [callback_result(run.log_id, 200, None) for run in batch.claimed]
        self.timed("callback", lambda: transact(lambda session: complete(session, results, now_ms=now_ms)))

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        began, used = time.perf_counter(), time.process_time()
        result = work()
        self.took[stage].append((time.perf_counter() - began) * 1000)
        self.used[stage].append((time.process_time() - used) * 1000)
        return result

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Median time, 95th percentile and median CPU time of the stages, in ms."""
        return {stage: lists.summary(took, self.used[stage]) for stage, took in self.took.items()}


def compare_installations(logs: Sequence[Log]) -> dict[str, Any]:
    """Return the ratios, second log to first, of CPU a trigger, without the stub, and of its median lag."""
    for log in logs:
        with log.made.engine().begin() as connection:
            connection.execute(update(Group).values(address_type=0, address_list=None))
            connection.execute(update(Job).values(schedule_conf="* * * * * ?", trigger_status=0))
        start(log.made)
    cpu: list[float] = []
    lag: list[float] = []
    for turn in range(WINDOWS + 1):
        order = logs if turn % 2 == 0 else logs[::-1]
        found = []
        for log in order:
            found.append(offer(log.made, Window(LOAD, WINDOW_S)))
            log.forget_runs()
        for figures in found:
            if any(figures[flaw] for flaw in ("lost", "doubled", "early", "unfinished")):
                raise RuntimeError(f"not every trigger was sent once and ended: {figures}")
        few, many = found if turn % 2 == 0 else found[::-1]
        if turn > 0:  # the first warms up
            cpu.append(many["cpu_ms_per_trigger"]["sum"] / few["cpu_ms_per_trigger"]["sum"])
            lag.append(many["lag_ms"]["p50"] / few["lag_ms"]["p50"])
    return {
        "cpu": round(statistics.median(cpu), 2),
        "lag": round(statistics.median(lag), 2),
        "by_window": {"cpu": [round(each, 2) for each in cpu], "lag": [round(each, 2) for each in lag]},
    }


def compare(db: str, rows: int) -> dict[str, Any]:
    """Return how many times as long each stage, and all, take beside the long log, and what they took."""
    claimer = Claimer("bench", "UTC", ("token",), 5_000, 3_000, RouteState(), lambda _address: 1_000_000)
    with contextlib.ExitStack() as stack:
        short, long = logs = [
            Log(stack.enter_context(cluster(db, pages.OPTIONS.get(db, ()))), size) for size in (SHORT, rows)
        ]
        for log in logs:
            log.fill()
        batches = count()
        for turn in range(TURNS):
            for log in logs if turn % 2 == 0 else reversed(logs):
                log.take_turn(claimer, batches)
        long.made.engine()  # binds this process to it
        page_ms = {name: figures["p95"] for name, figures in lists.measure().items()}
        installation = compare_installations(logs)
    # most turns have no checkpoint
    of_all = round(sum(long.took["all"]) / sum(short.took["all"]), 2)
    return {
        "installation": installation,
        "ratios": ratios(short.took, long.took, TURNS) | {"all": of_all},
        "cpu_ratios": ratios(short.used, long.used, TURNS),
        "stages_ms": {f"{log.rows:,}": log.figures for log in logs},
        "list_p95_ms": page_ms,
        "filled_s": long.filled_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    report("long_log", db=arguments.db, rows=arguments.rows, **compare(arguments.db, arguments.rows))


if __name__ == "__main__":
    main()
