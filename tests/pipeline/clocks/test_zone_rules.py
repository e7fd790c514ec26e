"""tick_zone_rules(): next times that were computed with earlier rules of a zone are corrected."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.clock import DAY_MS, Millis
from app.database.engine import read_scope, session_scope, transact
from app.models.job import Job
from app.pipeline.clocks import zone_rules
from app.pipeline.clocks.zone_rules import PERIOD_MS, SHIFT_MAX_MS, tick_zone_rules
from app.store.jobs import scheduling as jobs
from tests.support.factories import all_rows, make_due_job, make_job, only_row

HOUR: Millis = 3_600_000
#: 2024-07-01 09:00 in Beirut; without summer time, as it was once decided there, an hour later
NINE: Millis = int(datetime(2024, 7, 1, 9, tzinfo=ZoneInfo("Asia/Beirut")).timestamp() * 1_000)
STALE = NINE + HOUR
CRON, AT = ("CRON", "0 0 9 1 * ?"), ("AT", "2024-07-01 09:00:00")


def tick(now_ms: Millis) -> None:
    assert tick_zone_rules(now_ms, zone="Asia/Beirut") == PERIOD_MS


@pytest.mark.parametrize("schedule", [CRON, AT, ("CRON", "0 9 1 * *")])
@pytest.mark.parametrize("stale_ms", [NINE - HOUR, STALE])
def test_a_next_time_that_is_no_instant_any_more_is_corrected(
    database: str, caplog: pytest.LogCaptureFixture, schedule: tuple[str, str], stale_ms: Millis
) -> None:
    make_due_job(stale_ms, *schedule)
    make_due_job(stale_ms, *schedule, time_zone="Asia/Beirut")
    tick(NINE - 20 * DAY_MS)
    assert [job.trigger_next_time for job in all_rows(Job)] == [NINE, NINE]
    assert "next times corrected jobs=2" in caplog.text


def test_other_next_times_stay(database: str, caplog: pytest.LogCaptureFixture) -> None:
    make_due_job(NINE, *CRON)
    make_due_job(NINE, *AT)
    make_due_job(STALE, "FIX_RATE", "60")
    make_due_job(STALE, "CRON", "no cron")
    make_due_job(STALE, *AT, not_after_ms=NINE - 1)  # has no other
    make_job(schedule_type="CRON", schedule_conf=CRON[1], trigger_next_time=STALE)  # is off
    before = [job.trigger_next_time for job in all_rows(Job)]
    tick(NINE - 20 * DAY_MS)
    assert [job.trigger_next_time for job in all_rows(Job)] == before
    assert "corrected" not in caplog.text


@pytest.mark.parametrize(("ahead_ms", "next_ms"), [(SHIFT_MAX_MS, STALE), (SHIFT_MAX_MS + 1, NINE)])
def test_a_job_is_left_alone_if_its_instant_may_have_passed(
    database: str, ahead_ms: Millis, next_ms: Millis
) -> None:
    make_due_job(STALE, *CRON)
    tick(STALE - ahead_ms)
    assert only_row(Job).trigger_next_time == next_ms


def test_an_instant_that_has_run_is_not_planned_again(database: str) -> None:
    make_due_job(STALE, "CRON", "0 0 9 * * ?", last_fire_ms=NINE)
    tick(NINE - DAY_MS)
    assert only_row(Job).trigger_next_time == NINE + DAY_MS


def test_a_job_that_was_changed_meanwhile_is_left_alone(database: str) -> None:
    job_id = make_due_job(STALE, *CRON).id
    with read_scope() as session:
        read = jobs.find_planned(session, [job_id])[job_id]
    with session_scope() as session:
        session.get_one(Job, job_id).misfire_strategy = "FIRE_ONCE_NOW"
    assert transact(lambda session: zone_rules._write(session, [(read, NINE)])) == 0
    assert only_row(Job).trigger_next_time == STALE
