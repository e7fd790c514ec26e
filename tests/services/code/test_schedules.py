"""Schedules in jobs as code: switched in the apply that changes them."""

from typing import Any

import pytest

from app.errors import InvalidInput
from app.models.job import Job
from app.models.skip import Skip
from tests.factories import T0, all_rows, make_fire, only_row
from tests.services.code.steps import CLOSE, NIGHTLY, apply
from tests.services.code.test_undo import undo

pytestmark = pytest.mark.usefixtures("database")

NONE = {"schedule_type": "NONE", "schedule": ""}
#: before T0
PAST = {"schedule_type": "AT", "schedule": "2024-04-01 00:00:00", "time_zone": "UTC"}


def document(**members: Any) -> dict[str, Any]:
    return {"groups": {"sample": {}}, "jobs": {"sample/close": {**CLOSE, **members}}}


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
