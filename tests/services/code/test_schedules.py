"""Schedules in jobs as code: switched in the apply that changes them, and those that have ended."""

from typing import Any

import pytest

from app.database.engine import session_scope
from app.errors import InvalidInput
from app.models.job import Job
from app.models.skip import Skip
from app.pipeline.scan import scan
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan, shown
from tests.support.code import undo
from tests.support.factories import T0, all_rows, make_fire, only_row

pytestmark = pytest.mark.usefixtures("database")

NONE = {"schedule_type": "NONE", "schedule": ""}
#: 2024-05-02 00:00:00, and 2024-04-01 00:00:00, which is before T0
ONCE = {"schedule_type": "AT", "schedule": "2024-05-02 00:00:00", "time_zone": "UTC"}
PAST = {**ONCE, "schedule": "2024-04-01 00:00:00"}
LATER = T0 + 7 * 86_400_000


def document(**members: Any) -> dict[str, Any]:
    return {"groups": {"sample": {}}, "jobs": {"sample/close": {**CLOSE, **members}}}


def end() -> None:
    """Let the schedule end, as the scan does with its last instant."""
    with session_scope() as session:
        job = session.get_one(Job, only_row(Job).id)
        job.trigger_status = job.trigger_next_time = 0


@pytest.mark.parametrize("schedule", [NONE, PAST])
def test_a_job_is_switched_off_with_the_end_of_its_schedule(schedule: dict[str, str]) -> None:
    apply(document(**NIGHTLY, enabled=True))
    apply(document(**schedule, enabled=False))
    job = only_row(Job)
    assert (job.schedule_type, job.trigger_status, job.trigger_next_time) == (schedule["schedule_type"], 0, 0)


def test_an_instant_of_the_schedule_that_ends_is_skipped_as_stopped() -> None:
    apply(document(**NIGHTLY, enabled=True))
    make_fire(only_row(Job), due_time=T0 - 1)
    apply(document(**NONE, enabled=False))
    assert [row.reason for row in all_rows(Skip)] == ["stopped"]


def test_a_job_that_stays_on_needs_a_schedule_with_an_instant() -> None:
    apply(document(**NIGHTLY, enabled=True))
    with pytest.raises(InvalidInput, match="never fires again"):
        apply(document(**NONE))


@pytest.mark.parametrize("schedule", [NONE, PAST])
def test_the_first_schedule_of_a_job_is_taken_back(schedule: dict[str, str]) -> None:
    apply(document(**schedule, enabled=False))
    undo(apply(document(**NIGHTLY, enabled=True)).apply_id)
    assert (only_row(Job).schedule_type, only_row(Job).trigger_status) == (schedule["schedule_type"], 0)


@pytest.mark.parametrize(
    "schedule",
    [ONCE, {**NIGHTLY, "not_after": "2024-05-03T00:00:00Z"}, {**NIGHTLY, "schedule": "0 0 2 2 5 ? 2024"}],
)
def test_a_schedule_that_has_ended_is_as_its_file_says(schedule: dict[str, str]) -> None:
    once = document(**schedule, enabled=True)
    apply(once)
    end()
    assert plan(once, now_ms=LATER).is_empty
    applied = apply(document(**schedule, enabled=True, timeout_s=9), now_ms=LATER)
    assert shown(applied.plan) == [("job", "sample/close", "update", ["timeout_s"])]
    assert applied.plan.objects[0].notes == ("its schedule has ended: it stays off",)
    assert (only_row(Job).executor_timeout, only_row(Job).trigger_status) == (9, 0)


def test_a_schedule_that_has_ended_begins_again_with_another_instant() -> None:
    apply(document(**ONCE, enabled=True))
    end()
    apply(document(**{**ONCE, "schedule": "2024-06-01 00:00:00"}, enabled=True), now_ms=LATER)
    assert only_row(Job).trigger_status == 1


def test_a_schedule_is_not_changed_to_one_that_has_ended() -> None:
    apply(document(**ONCE, enabled=True))
    end()
    with pytest.raises(InvalidInput, match="never fires again"):
        plan(document(**PAST, enabled=True), now_ms=LATER)


def test_a_job_to_be_off_stays_off_though_the_scan_has_just_ended_it() -> None:
    soon = {**ONCE, "schedule": "2024-05-01 03:04:10"}
    apply(document(**soon, enabled=True))
    assert len(scan(node="one", zone="UTC", now_ms=T0)) == 1
    apply(document(**NIGHTLY, enabled=False), now_ms=T0 + 1_000)
    assert (only_row(Job).schedule_type, only_row(Job).trigger_status) == ("CRON", 0)
