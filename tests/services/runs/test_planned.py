"""Planned runs: at their instant, whatever becomes of the schedule; withdrawn while they wait."""

from dataclasses import replace

import pytest
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.runs.trigger_keys import Trigger, trigger_of
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.claim import find_unseen
from app.pipeline.clocks.returns import bring_back
from app.pipeline.handover import hand_back
from app.pipeline.late import settle_late
from app.services.jobs import jobs, triggers
from app.services.runs import planned_runs
from app.settings.config import Config
from app.store.copies import after_restore
from tests.pipeline.steps import as_due, claim_fires
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_due_job, make_job, only_row
from workers.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("database")
ADMIN = system_actor("test")
HOUR: Millis = 3_600_000


def plan(job: Job, due_ms: Millis = T0 + HOUR, now_ms: Millis = T0) -> Trigger:
    def work(session: Session) -> Trigger:
        return jobs.trigger_job(
            session, job.id, executor_param="x", address_list=None, actor=ADMIN, now_ms=now_ms, due_ms=due_ms
        ).trigger

    return transact(work)


def withdraw(trigger: Trigger, actor: Actor = ADMIN) -> None:
    transact(lambda session: planned_runs.withdraw(session, trigger, actor=actor, now_ms=T0 + 5))


def due_at(now_ms: Millis) -> list[Millis]:
    return [fire.due_time for fire in find_unseen("one", after_id=0, now_ms=now_ms, limit=100)]


def test_it_starts_at_its_instant_and_not_a_millisecond_before() -> None:
    plan(make_job())
    assert due_at(T0 + HOUR - 1) == []
    claim_fires(now_ms=T0 + HOUR - 1)
    assert all_rows(JobLog) == []
    assert due_at(T0 + HOUR) == [T0 + HOUR]
    claim_fires(now_ms=T0 + HOUR)
    log = only_row(JobLog)
    assert (log.trigger_time, log.executor_param, log.trigger_type) == (T0 + HOUR, "x", "MANUAL")


def test_it_runs_after_an_outage_of_any_length_whatever_the_misfire_strategy() -> None:
    plan(make_job(misfire_strategy="DO_NOTHING"))
    late_ms = T0 + 3 * DAY_MS
    assert settle_late(as_due(all_rows(Fire)), node="one", zone="UTC", now_ms=late_ms) == frozenset()
    claim_fires(now_ms=late_ms)
    assert only_row(JobLog).trigger_time == late_ms
    assert all_rows(Skip) == []


def test_changes_of_the_schedule_and_a_stop_of_the_workers_leave_it(config: Config) -> None:
    job = make_due_job(T0 + 10 * HOUR, schedule_conf="36000")
    plan(job, T0 + HOUR)
    transact(lambda session: jobs.stop_job(session, job.id, actor=ADMIN, clock=lambda: T0))
    transact(lambda session: jobs.start_job(session, job.id, actor=ADMIN, clock=lambda: T0))
    Scheduler(replace(config, access_tokens=("a-token-of-some-length",), time_zone="UTC")).tick_scan(T0)
    hand_back(node="one", zone="UTC", now_ms=T0)
    bring_back(zone="UTC", now_ms=T0, has_seen_return=True)
    assert [fire.due_time for fire in all_rows(Fire, trigger_type="MANUAL")] == [T0 + HOUR]


def test_a_restore_keeps_what_is_still_to_come_and_skips_what_was_due() -> None:
    job = make_job()
    plan(job, T0 + HOUR)
    plan(job, T0 + 2 * HOUR)
    taken = transact(lambda session: after_restore.take_queued(session, now_ms=T0 + HOUR))
    assert [row["logical_ms"] for row in taken] == [T0 + HOUR]
    assert [fire.due_time for fire in all_rows(Fire)] == [T0 + 2 * HOUR]


def test_the_runs_planned_for_a_job_are_listed_the_next_first() -> None:
    job = make_job()
    triggers = [plan(job, T0 + hours * HOUR) for hours in (3, 1, 2)]
    plan(make_job())
    with read_scope() as session:
        found = planned_runs.list_planned(session, job.id, now_ms=T0 + HOUR, limit=10)
    assert [(run.trigger, run.due_ms) for run in found] == [
        (triggers[2], T0 + 2 * HOUR),
        (triggers[0], T0 + 3 * HOUR),
    ]


@pytest.mark.parametrize("ahead_ms", [0, -1, triggers.AHEAD_DAYS * DAY_MS + 1])
def test_the_past_and_the_far_future_are_refused(ahead_ms: Millis) -> None:
    with pytest.raises(InvalidInput, match="must be due in the next 366 days") as refused:
        plan(make_job(), T0 + ahead_ms)
    assert refused.value.field == "at"


def test_a_job_has_a_bounded_number_of_planned_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "PLANNED_MAX", 2)
    job = make_job()
    plan(job)
    plan(job)
    with pytest.raises(Conflict, match="has 2 planned runs already"):
        plan(job)


def test_a_waiting_run_is_withdrawn_with_an_entry_in_the_change_history() -> None:
    job = make_job()
    trigger, other = plan(job), plan(job)
    withdraw(trigger)
    assert [trigger_of(job.id, fire.fire_key) for fire in all_rows(Fire)] == [other]
    entry = only_row(AuditEntry, action="job.withdraw")
    assert (entry.object_id, entry.changes) == (job.id, f'{{"due_ms": {T0 + HOUR}}}')
    with pytest.raises(NotFound):
        withdraw(trigger)


def test_a_run_that_was_claimed_cannot_be_withdrawn_nor_a_broadcast_in_part() -> None:
    trigger = plan(make_job())
    claim_fires(now_ms=T0 + HOUR)
    with pytest.raises(Conflict, match="has started already"):
        withdraw(trigger)
    shards = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    broadcast = plan(shards)
    claim_fires(all_rows(Fire, job_id=shards.id), now_ms=T0 + HOUR)
    claim_fires(all_rows(Fire, job_id=shards.id)[:1], now_ms=T0 + HOUR)
    with pytest.raises(Conflict, match="has started already"):
        withdraw(broadcast)
    assert len(all_rows(Fire, job_id=shards.id)) == 2


@pytest.mark.parametrize(
    ("rights", "error"), [({}, NotFound), ({Right.VIEW}, PermissionDenied), (ALL_RIGHTS, None)]
)
def test_withdrawing_needs_the_right_to_operate(
    rights: frozenset[Right], error: type[Exception] | None
) -> None:
    job = make_job()
    trigger = plan(job)
    actor = Actor(5, "ann", is_admin=False, rights={job.job_group: frozenset(rights)})
    if error is None:
        withdraw(trigger, actor)
    else:
        with pytest.raises(error):
            withdraw(trigger, actor)
    assert len(all_rows(Fire)) == (error is not None)
