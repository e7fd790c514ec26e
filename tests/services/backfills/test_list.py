"""The list of a backfill: what the rules of the job leave out."""

import pytest

from app.clock import DAY_MS, MINUTE_MS
from app.domain.backfills.kinds import ACTIVE_MAX
from app.errors import Conflict, InvalidInput
from app.models.calendar import JobBlackout
from tests.services.backfills.backfill_steps import change, draft, minute, minutely, plan, start
from tests.support.factories import T0, make_job, save
from tests.support.plan import every_database


@every_database
@pytest.mark.parametrize("days", [0, 400])
def test_what_a_blackout_has_covered_is_not_run_however_long_it_is_over(database: str, days: int) -> None:
    job, shift_ms = minutely(), days * DAY_MS
    times = {"from_ms": minute(2) - shift_ms, "until_ms": minute(1) - shift_ms, "created_ms": T0 - shift_ms}
    save(JobBlackout(job_id=job.id, reason="moving", ended_ms=times["until_ms"], **times))
    span = {"from_ms": minute(3) - shift_ms, "to_ms": minute(1) - shift_ms + MINUTE_MS}
    listed = plan(job, draft(**span))
    assert [(each.standing, each.is_run, each.reason) for each in listed.instants] == [
        ("missing", True, ""),
        ("blackout", False, "moving"),
        ("missing", True, ""),
    ]
    assert listed.sentence == "3 instants: 1 in a blackout, 2 to run"


def test_a_job_has_so_many_active_backfills_at_most(database: str) -> None:
    job = minutely()
    first, *_ = [start(job, draft(number, number)) for number in range(1, ACTIVE_MAX + 1)]
    with pytest.raises(Conflict, match=f"The job has {ACTIVE_MAX} backfills that have not ended"):
        start(job, draft(ACTIVE_MAX + 1, ACTIVE_MAX + 1))
    assert change(first, "cancel") == "cancelled"
    start(job, draft(ACTIVE_MAX + 1, ACTIVE_MAX + 1))


@pytest.mark.parametrize(
    "columns", [{"schedule_conf": "0 0 25 * * ?"}, {"schedule_type": "FIX_RATE"}, {"time_zone": "Nope/Zone"}]
)
def test_a_schedule_that_was_never_checked_is_refused(database: str, columns: dict[str, str]) -> None:
    job = make_job(**{"schedule_type": "CRON", "schedule_conf": "0 * * * * ?"} | columns)
    with pytest.raises(InvalidInput, match="The schedule is invalid"):
        plan(job, draft())
