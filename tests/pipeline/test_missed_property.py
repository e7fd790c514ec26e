"""RUN_ALL over random outages: each instant that is kept runs once, in order, and the others are skips."""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from app.clock import HOUR_MS, SECOND_MS, Millis
from app.database.engine import transact
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline import missed_runs as release
from app.pipeline.late import LATE_MS, settle_late
from app.pipeline.scan import scan
from app.store.fires import missed_runs
from tests.pipeline.calendar_steps import ZONE, account_of, ruled_job
from tests.pipeline.limit_steps import look as claim_waiting
from tests.pipeline.round_steps import claim_due
from tests.pipeline.steps import as_due, call_back, run_concurrently, unresolve
from tests.support.factories import T0, all_rows, make_group
from tests.support.plan import every_database

pytestmark = every_database

SCHEDULES = (("FIX_RATE", "7"), ("CRON", "0/20 * * * * ?"), ("CRON", "0/5 * * * *"), ("FIX_RATE", "300"))
STEPS = (SECOND_MS, 4 * SECOND_MS, 20 * SECOND_MS, LATE_MS, LATE_MS, 3 * HOUR_MS)


class World:
    """Jobs that run all they have missed, two schedulers, and a clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms: Millis = T0
        group = make_group().id
        self.jobs = [self._job(group, *each) for each in SCHEDULES]
        #: heads that a scheduler has found, and not released yet
        self.found: list[int] = []
        self.running: list[int] = []
        #: they hold their slots
        self.unresolved: list[int] = []

    def _job(self, group: int, kind: str, conf: str) -> Job:
        return ruled_job(
            next_after_ms(Schedule(ScheduleType(kind), conf, ZONE), T0) or 0,
            kind,
            conf,
            job_group=group,
            misfire_strategy="RUN_ALL",
            misfire_max=self.random.choice([3, 25]),
            misfire_max_age_s=self.random.choice([60, 7_200, 86_400]),
            max_running=self.random.choice([0, 0, 2]),
        )

    def be_away(self) -> None:
        """Let time pass without a scheduler."""
        self.now_ms += self.random.choice(STEPS)

    def scan(self) -> None:
        self.now_ms += self.random.choice([SECOND_MS, 5 * SECOND_MS])
        scan(node=self.random.choice(["one", "two"]), zone=ZONE, now_ms=self.now_ms)

    def settle(self) -> None:
        """Find what the other scheduler has read ahead and left."""
        due = [fire for fire in as_due(all_rows(Fire, state="PENDING")) if fire.due_time <= self.now_ms]
        settle_late(due, node="one", zone=ZONE, now_ms=self.now_ms)

    def find(self) -> None:
        """A scheduler finds what it may release, and pauses, or is killed."""
        self.found = missed_runs.find_heads()

    def release(self) -> None:
        transact(partial(release._release, fire_ids=self.found))

    def look(self) -> None:
        """Two schedulers look at once."""
        run_concurrently(release.release_next, release.release_next)

    def claim(self) -> None:
        self.running += [run.log_id for run in claim_due(self.now_ms)]
        self.running += [run.log_id for run in claim_waiting(self.now_ms).claims]

    def end(self) -> None:
        if self.running:
            log_id = self.running.pop(self.random.randrange(len(self.running)))
            if self.random.random() < 0.1:
                unresolve(log_id, now_ms=self.now_ms)
                self.unresolved.append(log_id)
            else:
                call_back(log_id, self.random.choice([200, 200, 500]), now_ms=self.now_ms)

    def check_order(self, step: Callable[[], None]) -> None:
        """Take a step: at most one missed run of a job is on its way, and none that waits was before it."""
        before = {fire.id for fire in all_rows(Fire, waits_for="missed")}
        step()
        held, out = dict[int, Millis](), Counter[int]()
        for fire in all_rows(Fire):
            if fire.waits_for == "missed":
                held[fire.job_id] = min(fire.due_time, held.get(fire.job_id, fire.due_time))
        for fire in all_rows(Fire, trigger_type="MISFIRE"):
            if fire.waits_for != "missed" and fire.state != "HELD":
                out[fire.job_id] += 1
                assert fire.id not in before or fire.due_time < held.get(fire.job_id, fire.due_time + 1)
        assert max(out.values(), default=0) <= 1

    def drain(self) -> None:
        while True:
            scan(node="one", zone=ZONE, now_ms=self.now_ms)
            self.check_order(self.look)
            self.claim()
            while self.running:
                self.end()
            while self.unresolved:
                call_back(self.unresolved.pop(), now_ms=self.now_ms)
            if not all_rows(Fire, state="GATED") and not all_rows(Fire, state="WAITING"):
                return

    def check(self) -> None:
        for job in self.jobs:
            tally = account_of(job, self.now_ms).tally
            assert (tally.unexplained, tally.unexpected) == (0, 0), (job.schedule_conf, tally)
            logs = all_rows(JobLog, job_id=job.id)
            instants = [log.fire_time for log in logs if log.fire_time]
            assert len(instants) == len(set(instants))
            for skip in all_rows(Skip, job_id=job.id):
                assert not [at_ms for at_ms in instants if skip.from_ms <= at_ms <= skip.to_ms]


@pytest.mark.parametrize("seed", range(6))
def test_each_missed_instant_runs_once_in_order_or_is_skipped(database: str, seed: int) -> None:
    world = World(seed)
    steps = [
        *(3 * [world.be_away, world.look, world.claim] + 6 * [world.scan, world.end]),
        *(world.settle, world.find, world.release),
    ]
    for _ in range(60):
        world.check_order(world.random.choice(steps))
    world.drain()
    world.check()
