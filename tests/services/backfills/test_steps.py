"""Steps of backfills: which runs there are, in which order, and when a backfill has ended."""

import pytest

from app.database.engine import transact
from app.models.backfill import BackfillInstant
from app.models.fire import Fire
from app.models.log import JobLog
from app.store.runs.clearing import Clearing, clear_batch
from tests.pipeline.round_steps import claim_due
from tests.pipeline.steps import call_back, unresolve
from tests.services.backfills.backfill_steps import (
    change,
    draft,
    go_on,
    minute,
    minutely,
    start,
    state,
    states,
)
from tests.support.factories import T0, all_rows
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")


def end_next(code: int = 200, *, now_ms: int = T0) -> list[int]:
    """Claim what is due and end it; return the log ids."""
    log_ids = [run.log_id for run in claim_due(now_ms)]
    for log_id in log_ids:
        call_back(log_id, code, now_ms=now_ms)
    return log_ids


@every_database
def test_each_instant_runs_once_and_in_order() -> None:
    job = minutely()
    backfill_id = start(job, draft(3, 1))
    keys = list[str]()
    for _ in range(3):
        keys += [fire.fire_key for fire in all_rows(Fire)]
        assert end_next()
        go_on(backfill_id)
    assert keys == [f"backfill:{backfill_id}:{minute(number)}" for number in (3, 2, 1)]
    assert state(backfill_id) == "done"
    assert states(backfill_id) == ["succeeded"] * 3
    logs = all_rows(JobLog)
    assert [log.logical_ms for log in logs] == [minute(3), minute(2), minute(1)]
    assert {log.trigger_type for log in logs} == {"BACKFILL"}
    assert {log.chain for log in logs} == {0}
    assert [row.log_id for row in all_rows(BackfillInstant)] == [log.id for log in logs]


@every_database
def test_a_failure_stops_it_and_resuming_runs_the_instant_again() -> None:
    job = minutely()
    backfill_id = start(job, draft(3, 1, max_running=2))
    first, second = [run.log_id for run in claim_due()]
    call_back(first, 500, now_ms=T0)
    assert go_on(backfill_id) == "stopping"
    call_back(second, 200, now_ms=T0)
    assert go_on(backfill_id) == "failed"
    assert states(backfill_id) == ["failed", "succeeded", "waiting"]
    assert change(backfill_id, "resume") == "running"
    assert [fire.logical_ms for fire in all_rows(Fire)] == [minute(3), minute(1)]
    assert end_next()
    assert go_on(backfill_id) == "done"
    assert states(backfill_id) == ["succeeded"] * 3


@every_database
def test_a_retry_belongs_to_its_instant() -> None:
    job = minutely(executor_fail_retry_count=1)
    backfill_id = start(job, draft(2, 1))
    assert end_next(500)
    assert go_on(backfill_id) == "running"
    assert states(backfill_id) == ["running", "waiting"]
    later = T0 + 60_000
    [retried] = end_next(now_ms=later)
    go_on(backfill_id, now_ms=later)
    assert states(backfill_id) == ["succeeded", "running"]
    assert all_rows(BackfillInstant)[0].log_id == retried


@every_database
def test_cancelled_means_that_nothing_is_left() -> None:
    job = minutely()
    backfill_id = start(job, draft(4, 1, max_running=2))
    [fire, _] = all_rows(Fire)
    [run] = [each for each in claim_due() if each.fire_id == fire.id][:1]
    assert change(backfill_id, "cancel") == "cancelling"
    assert states(backfill_id)[0] == "running"
    for other in all_rows(Fire):
        call_back(other.log_id or 0, 200, now_ms=T0)
    assert run.log_id
    assert go_on(backfill_id) == "cancelled"
    assert not all_rows(Fire)
    assert states(backfill_id) == ["succeeded", "succeeded", "withdrawn", "withdrawn"]


@every_database
def test_cancelling_withdraws_what_is_not_sent() -> None:
    backfill_id = start(minutely(), draft(4, 1, max_running=2))
    assert change(backfill_id, "cancel") == "cancelled"
    assert not all_rows(Fire)
    assert states(backfill_id) == ["withdrawn"] * 4


@every_database
def test_a_pause_starts_nothing_and_lets_runs_end() -> None:
    backfill_id = start(minutely(), draft(2, 1))
    assert change(backfill_id, "pause") == "paused"
    assert end_next()
    assert go_on(backfill_id) == "paused"
    assert states(backfill_id) == ["succeeded", "waiting"]
    assert change(backfill_id, "resume") == "running"
    assert len(all_rows(Fire)) == 1


@every_database
def test_resuming_does_not_run_what_has_succeeded_since() -> None:
    job = minutely(delivery="at_most_once")
    backfill_id = start(job, draft(2, 1))
    [lost] = [run.log_id for run in claim_due()]
    unresolve(lost)
    assert go_on(backfill_id) == "failed"
    call_back(lost, 200, now_ms=T0)
    assert change(backfill_id, "resume") == "running"
    assert states(backfill_id) == ["succeeded", "running"]


@every_database
def test_a_failure_that_comes_late_leaves_nothing_behind() -> None:
    job = minutely(executor_fail_retry_count=1, delivery="at_most_once")
    backfill_id = start(job, draft(2, 1))
    [run] = claim_due()
    assert unresolve(run.log_id)
    assert go_on(backfill_id) == "failed"
    assert call_back(run.log_id, 500)
    assert not all_rows(Fire)
    assert change(backfill_id, "resume") == "running"
    assert [fire.logical_ms for fire in all_rows(Fire)] == [minute(2)]


@every_database
def test_a_retry_belongs_to_its_instant_when_the_run_before_is_cleared() -> None:
    job = minutely(executor_fail_retry_count=1)
    backfill_id = start(job, draft(2, 1))
    assert end_next(500)
    assert transact(lambda session: clear_batch(session, Clearing(0, job.id)))
    assert go_on(backfill_id) == "running"
    assert states(backfill_id) == ["running", "waiting"]
    assert change(backfill_id, "cancel") == "cancelled"
    assert not all_rows(Fire)
