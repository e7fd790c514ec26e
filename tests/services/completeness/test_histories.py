"""Accounts against the scheduler's own decisions: random histories leave nothing unexplained."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from sqlalchemy import delete, select

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.completeness.equation import Tally
from app.domain.completeness.expected_instants import Interval
from app.domain.enums import MisfireStrategy, ScheduleType, TriggerStatus
from app.errors import InvalidInput
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import Node
from app.models.skip import Skip
from app.pipeline.complete import callback_result
from app.pipeline.handover import hand_back
from app.pipeline.scan import scan
from app.services.completeness.accounts import JobAccount, find_accounts
from app.services.jobs import jobs
from tests.pipeline.steps import claim_fires, end, record_sent, sent
from tests.support.factories import T0, all_rows, make_group, save
from tests.support.jobs import ADMIN, draft
from tests.support.plan import every_database

pytestmark = every_database

ZONE = "Asia/Shanghai"
SCHEDULES = [
    (ScheduleType.CRON, "0/2 * * * * ?"),
    (ScheduleType.CRON, "* * * * * ?"),
    (ScheduleType.CRON, "5/20 * * * * ?"),
    (ScheduleType.CRON, "*/1 * * * *"),
    (ScheduleType.FIX_RATE, "3"),
    (ScheduleType.FIX_RATE, "17"),
    (ScheduleType.FIX_DELAY, "4"),
    (ScheduleType.AT, "2024-05-01 11:04:30"),
]


class Installation:
    """Jobs that their users change at random, and one node, which now and then stands still."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = T0
        self.group_ids = [make_group(app_name=f"app-{number}").id for number in range(2)]
        node = {"name": "one", "kind": "workers", "started_ms": T0, "heartbeat_ms": T0, "version": "1"}
        save(Node(**node, scanned_ms=0))
        self.job_ids: list[int] = []
        self.removed: list[int] = []
        for _ in range(5):
            with suppress(InvalidInput):
                self.add()

    def clock(self) -> Millis:
        """The present, which passes while something is done."""
        self.now_ms += self.random.choice((0, 1, 40))
        return self.now_ms

    def draft(self) -> dict[str, object]:
        kind, conf = self.random.choice(SCHEDULES)
        bounds = {}
        if kind is not ScheduleType.AT and not self.random.randrange(4):
            bounds = {"not_before_ms": self.now_ms + 5_000, "not_after_ms": self.now_ms + 30_000}
        misfire = self.random.choice(list(MisfireStrategy))
        return {
            "schedule_type": kind.value,
            "schedule_conf": conf,
            "misfire_strategy": misfire.value,
            **bounds,
        }

    def add(self) -> None:
        with session_scope() as session:
            new = draft(self.random.choice(self.group_ids), **self.draft())
            start = self.random.random() < 0.8 and self.may_start(new.schedule_type)
            self.job_ids.append(jobs.add_job(session, new, actor=ADMIN, clock=self.clock, start=start))

    def may_start(self, kind: str) -> bool:
        return kind != ScheduleType.AT or self.now_ms < T0 + 20_000

    def change(self) -> None:
        """Do what a user may do to a job."""
        job_id = self.random.choice(self.job_ids)
        with read_scope() as session:
            job = session.get_one(Job, job_id)
        is_on = job.trigger_status == TriggerStatus.RUNNING
        actions: list[Callable[[], None]] = [
            lambda: self.do(jobs.stop_job, job_id, clock=self.clock),
            lambda: self.edit(job_id, job),
            lambda: self.do(jobs.move_job, job_id, group_id=self.group_ids[1], clock=self.clock),
            self.add,
        ]
        if not is_on and self.may_start(job.schedule_type) and not job.not_after_ms:
            actions += 3 * [lambda: self.do(jobs.start_job, job_id, clock=self.clock)]
        if not self.random.randrange(8):
            actions = [lambda: self.remove(job_id)]
        self.random.choice(actions)()

    def do(self, action: Callable[..., object], job_id: int, **more: object) -> None:
        transact(lambda session: action(session, job_id, actor=ADMIN, **more))

    def edit(self, job_id: int, job: Job) -> None:
        changes = self.draft()
        if changes["schedule_type"] == ScheduleType.AT and not self.may_start("AT"):
            return
        new = draft(job.job_group, **changes)
        self.do(jobs.update_job, job_id, draft=new, clock=self.clock)

    def remove(self, job_id: int) -> None:
        self.do(jobs.remove_job, job_id, now_ms=self.clock())
        self.job_ids.remove(job_id)
        self.removed.append(job_id)

    def step(self) -> None:
        """Let a second pass: now and then a change, mostly a scan, and what is due is claimed and sent."""
        self.now_ms += 1_000
        if not self.random.randrange(3):
            with suppress(InvalidInput):  # a schedule that never fires again
                self.change()
        if not self.random.randrange(12):
            self.now_ms += self.random.choice((3_000, 9_000, 20_000))
        if not self.random.randrange(10):
            hand_back(node="one", zone=ZONE, now_ms=self.now_ms)
        scan(node="one", zone=ZONE, now_ms=self.now_ms)
        with session_scope() as session:
            session.execute(select(Node)).scalar_one().scanned_ms = self.now_ms
        self.run_due()

    def run_due(self) -> None:
        with read_scope() as session:
            due = list(
                session.scalars(select(Fire).where(Fire.due_time <= self.now_ms, Fire.log_id.is_(None)))
            )
        if self.random.random() < 0.9:
            claimed = claim_fires(due, now_ms=self.now_ms).claims
            record_sent(*(sent(run) for run in claimed), now_ms=self.now_ms)
        with read_scope() as session:
            open_ids = list(session.scalars(select(JobLog.id).where(JobLog.handle_code == 0)))
        ended = [log_id for log_id in open_ids if self.random.random() < 0.7]
        end(*(callback_result(log_id, 200, "") for log_id in ended), now_ms=self.now_ms)

    def accounts(self) -> list[JobAccount]:
        with read_scope() as session:
            interval = Interval(T0 - 60_000, self.now_ms)
            return list(find_accounts(session, interval, now_ms=self.now_ms))

    def total(self, *, of_present: bool = False) -> Tally:
        total = Tally()
        for account in self.accounts():
            if not of_present or account.job_id in self.job_ids:
                total.add(account.account.tally)
        return total


@pytest.mark.parametrize(
    "seed", [0, 1, 3, *(pytest.param(seed, marks=pytest.mark.extensive) for seed in range(4, 7))]
)
def test_a_random_history_leaves_nothing_unexplained(database: str, seed: int) -> None:
    installation = Installation(seed)
    for _ in range(45):
        installation.step()
    for account in installation.accounts():
        tally = account.account.tally
        strange = [each for each in account.account.irregular if each.term == "unexplained"]
        assert (account.job_id, strange, tally.unexpected) == (account.job_id, [], 0), tally
        summands = (tally.on_time, tally.late, tally.not_started.total(), tally.skipped.total())
        assert sum(summands) + tally.waiting + tally.unexplained == tally.expected
    total = installation.total()
    assert total.on_time + total.late + total.skipped.total() > 8


@pytest.mark.parametrize("model", [JobLog, Skip])
def test_a_row_that_vanishes_is_an_unexplained_instant(database: str, model: type[JobLog | Skip]) -> None:
    installation = Installation(1)
    while len(all_rows(model)) < 3:
        installation.step()
    for _ in range(8):
        installation.step()
    scheduled = [row for row in all_rows(model) if not isinstance(row, JobLog) or row.trigger_type == "CRON"]
    with read_scope() as session:
        delays = set(session.scalars(select(Job.id).where(Job.schedule_type == "FIX_DELAY")))
    row = next(row for row in scheduled if row.job_id in installation.job_ids and row.job_id not in delays)
    count = 1 if isinstance(row, JobLog) else row.skipped
    before = installation.total(of_present=True)
    transact(lambda session: session.execute(delete(model).where(model.id == row.id)))
    after = installation.total(of_present=True)
    assert (before.unexplained, after.unexplained) == (0, count)
    assert after.expected == before.expected
