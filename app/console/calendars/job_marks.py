"""Marks of a job in the year of its calendar: on which days it runs, is moved or left out."""

from collections.abc import Mapping
from datetime import date, datetime
from zoneinfo import ZoneInfo

from app.clock import LATEST_MS, SECOND_MS, Millis
from app.console.calendars.year_view import JobMark
from app.console.ui.calendars.fates import day_text, fate_text
from app.console.web.language import _
from app.domain.calendars.preview import Fate, PreviewInstant, instants
from app.domain.schedules.schedule import Schedule, zone
from app.models.base import zone_name
from app.models.job import Job
from app.services.jobs.rules import schedule_of

#: instants of a year that are looked at; a schedule with more of them is marked for a part of it
MOST = 5_000


def marks_of(job: Job, year: int) -> Mapping[date, JobMark]:
    """Return what becomes of the instants of a job in a year by its present schedule, by their days.

    Of several instants of a day the first one that runs counts, else the first one.
    """
    schedule = schedule_of(job, zone_name())
    local = zone(schedule.time_zone)
    begin_ms = int(datetime(year, 1, 1, tzinfo=local).timestamp()) * SECOND_MS
    end_ms = int(datetime(year + 1, 1, 1, tzinfo=local).timestamp()) * SECOND_MS
    marks: dict[date, JobMark] = {}
    for number, instant in enumerate(instants(schedule, begin_ms - 1)):
        if number >= MOST or instant.raw_ms >= end_ms:
            break
        for day, mark in _marks(instant, schedule, local):
            if day not in marks or (mark.runs and not marks[day].runs):
                marks[day] = mark
    return marks


def _marks(instant: PreviewInstant, schedule: Schedule, local: ZoneInfo) -> list[tuple[date, JobMark]]:
    """Return the marks of an instant: of its day, and of the day to which it moves."""
    text = fate_text(instant, schedule)
    if instant.due_ms is None:
        return [(_day(instant.raw_ms, local), JobMark(instant.fate.value, text))]
    if instant.fate is Fate.RUNS:
        return [(_day(instant.due_ms, local), JobMark("runs", text or _("the job runs"), runs=True))]
    target = _("moved to %(day)s", day=day_text(instant.due_ms, local))
    return [
        (_day(instant.raw_ms, local), JobMark("skipped", target)),
        (_day(instant.due_ms, local), JobMark("moved", text, runs=True)),
    ]


def _day(ms: Millis, local: ZoneInfo) -> date:
    return datetime.fromtimestamp(min(ms, LATEST_MS) / 1000, local).date()
