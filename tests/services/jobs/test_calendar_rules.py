"""Calendars of jobs: what a save refuses, and that next times of saved jobs go by their rules."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.calendars.drafts import CalendarDraft
from app.errors import Conflict, InvalidInput
from app.models.job import Job
from app.services.calendars import calendars
from app.services.jobs import jobs
from app.services.jobs.details import upcoming, upcoming_logical
from app.store.jobs.listing import find_job
from tests.support.factories import T0, make_group, only_row
from tests.support.jobs import ADMIN, add, draft, update
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

RULE = json.dumps({"name": "cn"})
HOUR = 3_600_000
#: T0 is a Wednesday, 2024-05-01 03:04:05 UTC
NINE = T0 - 4 * 60_000 - 5_000 + 6 * HOUR
DAILY = {"schedule_type": "CRON", "schedule_conf": "0 0 9 * * ?", "time_zone": "UTC"}


def put(**days: str) -> None:
    entered = CalendarDraft(days={f"2024-05-{day[1:]}": kind for day, kind in days.items()})
    with session_scope() as session:
        calendars.put_calendar(session, "cn", entered, actor=ADMIN, clock=lambda: T0)


def start(job_id: int) -> Job:
    with session_scope() as session:
        jobs.start_job(session, job_id, actor=ADMIN, clock=lambda: T0)
    return only_row(Job, id=job_id)


def test_a_calendar_that_does_not_exist_is_refused() -> None:
    group = make_group()
    with pytest.raises(InvalidInput) as error:
        add(group.id, calendar=RULE, **DAILY)
    assert error.value.field == "calendar.name"
    put()
    job_id = add(group.id, calendar=RULE, **DAILY)
    stored = only_row(Job, id=job_id).calendar
    assert json.loads(stored or "") == {"name": "cn", "on": "workdays", "otherwise": "skip", "nth": None}
    update(job_id, group.id, **DAILY)
    assert only_row(Job, id=job_id).calendar is None


def test_a_job_starts_and_is_edited_by_its_calendar() -> None:
    put(d01="holiday")
    group = make_group()
    job_id = add(group.id, calendar=RULE, **DAILY)
    assert start(job_id).trigger_next_time == NINE + 24 * HOUR
    update(job_id, group.id, now_ms=T0, **DAILY)
    assert only_row(Job, id=job_id).trigger_next_time == NINE
    moved = json.dumps({"name": "cn", "otherwise": "previous"})
    update(job_id, group.id, now_ms=T0, calendar=moved, **DAILY)
    assert only_row(Job, id=job_id).trigger_next_time == NINE + 24 * HOUR
    with read_scope() as session:
        job = find_job(session, job_id)
        assert job is not None
        days = [(instant - NINE) // (24 * HOUR) for instant in upcoming(job, 4, now_ms=T0)]
        logical = [(instant - NINE) // (24 * HOUR) for instant in upcoming_logical(job, 4, now_ms=T0)]
    assert days == [1, 2, 5, 6], "not on Saturday and Sunday"
    assert logical == days, "none is moved where the schedule has one already"
    update(job_id, group.id, now_ms=T0, calendar=moved, **DAILY | {"schedule_conf": "0 0 9 4,5 * ?"})
    with read_scope() as session:
        job = find_job(session, job_id)
        assert job is not None
        assert [(instant - NINE) // (24 * HOUR) for instant in upcoming(job, 1, now_ms=T0)] == [2]
        assert [(instant - NINE) // (24 * HOUR) for instant in upcoming_logical(job, 1, now_ms=T0)] == [3]


def test_a_change_of_a_calendar_plans_the_jobs_that_name_it() -> None:
    put(d01="holiday")
    group = make_group()
    named, other = add(group.id, calendar=RULE, **DAILY), add(group.id, **DAILY)
    assert [start(job_id).trigger_next_time for job_id in (named, other)] == [NINE + 24 * HOUR, NINE]
    put()
    assert only_row(Job, id=named).trigger_next_time == NINE
    put(d01="holiday", d02="holiday", d03="holiday")
    times = [only_row(Job, id=job_id).trigger_next_time for job_id in (named, other)]
    assert times == [NINE + 5 * 24 * HOUR, NINE]


@every_database
def test_a_calendar_is_not_deleted_under_a_job_that_is_being_saved() -> None:
    put()
    group = make_group()

    def delete() -> None:
        with session_scope() as session:
            calendars.remove_calendar(session, "cn", actor=ADMIN, clock=lambda: T0)

    with ThreadPoolExecutor(1) as pool:
        with session_scope() as session:
            entered = draft(group.id, calendar=RULE, **DAILY)
            jobs.add_job(session, entered, actor=ADMIN, clock=lambda: T0)
            deletion = pool.submit(delete)
            with pytest.raises(TimeoutError):
                deletion.result(timeout=0.3)
        with pytest.raises(Conflict, match="Jobs use this calendar"):
            deletion.result(timeout=20)
