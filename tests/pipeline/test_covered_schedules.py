"""Schedules of which blackouts cover all that is left. docs/reference/blackouts.md, section 4."""

import pytest

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS
from app.database.engine import session_scope
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.spans import SpanComparison
from tests.pipeline.calendar_steps import add_blackout, end_blackout, pass_time, ruled_job
from tests.support.factories import T0, all_rows, only_row

pytestmark = pytest.mark.usefixtures("database")

HOUR = T0 - T0 % HOUR_MS + HOUR_MS


def test_a_fixed_delay_that_a_blackout_puts_off_beyond_its_window_does_not_run() -> None:
    job = ruled_job(HOUR, "FIX_DELAY", "60", not_after_ms=HOUR + 30 * MINUTE_MS)
    add_blackout(HOUR - MINUTE_MS, HOUR + HOUR_MS)
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = HOUR
    for at_ms in (HOUR, HOUR + HOUR_MS):
        pass_time(at_ms)

    assert all_rows(JobLog) == []
    assert only_row(Job, id=job.id).trigger_status == 0


def test_a_schedule_does_not_end_before_the_blackout_that_covers_what_is_left_of_it() -> None:
    job = ruled_job(HOUR, "CRON", "0 0 * * * ?", not_after_ms=HOUR + DAY_MS)
    blackout_id = add_blackout(HOUR + MINUTE_MS, HOUR + 2 * DAY_MS)
    for at_ms in (HOUR, HOUR + HOUR_MS):
        pass_time(at_ms)

    end_blackout(blackout_id, now_ms=HOUR + 90 * MINUTE_MS)

    assert only_row(JobLog).fire_time == HOUR
    row = only_row(Job, id=job.id)
    assert (row.trigger_status, row.trigger_next_time) == (1, HOUR + 2 * HOUR_MS)


def test_a_schedule_ends_with_the_blackout_that_has_covered_what_was_left_of_it() -> None:
    job = ruled_job(HOUR, "CRON", "0 0 * * * ?", not_after_ms=HOUR + DAY_MS)
    add_blackout(HOUR + MINUTE_MS, HOUR + 2 * DAY_MS)
    for at_ms in (HOUR, HOUR + 2 * DAY_MS):
        pass_time(at_ms)

    assert only_row(Job, id=job.id).trigger_status == 0


def test_a_fixed_rate_keeps_its_phase_until_the_blackout_is_ended_early() -> None:
    job = ruled_job(HOUR, "FIX_RATE", "420", not_after_ms=HOUR + HOUR_MS)
    blackout_id = add_blackout(HOUR + MINUTE_MS, HOUR + 2 * HOUR_MS)
    for at_ms in (HOUR, HOUR + 7 * MINUTE_MS):
        pass_time(at_ms)
    SpanComparison().tick(HOUR + 8 * MINUTE_MS)

    end_blackout(blackout_id, now_ms=HOUR + 10 * MINUTE_MS)

    assert only_row(Job, id=job.id).trigger_next_time == HOUR + 14 * MINUTE_MS
