"""API: calendars, which say on which days jobs run."""

from typing import Any
from urllib.parse import quote

from sqlalchemy.orm import Session

from app.api.v1.cursors import cut, read_cursor
from app.api.v1.endpoint import ADMIN, Call, Made, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.calendars import (
    CalendarDay,
    CalendarDays,
    CalendarDetail,
    CalendarImport,
    CalendarIn,
    CalendarOut,
    CalendarQuery,
    CalendarVersionOut,
    DaysQuery,
    NewCalendar,
)
from app.clock import now_ms
from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.drafts import CalendarDraft, count_kinds, draft_of
from app.domain.calendars.year import days_of_year
from app.services.calendars import calendars
from app.services.calendars.calendars import NamedCalendar
from app.services.calendars.days import CountryDays
from app.services.calendars.sources import Source, read_days
from app.store.base import locks
from app.store.calendars.calendars import StoredCalendar

resource = Resource("calendars", "Calendars: on which days the schedules of jobs run.")


def _lock(session: Session, name: str) -> None:
    # The schedule lock comes before those of rows.
    locks.take_schedule_lock(session)


@resource.get("/calendars", answer=Listed[CalendarOut], query=CalendarQuery)
def list_calendars(call: Call) -> Listed[CalendarOut]:
    """List calendars by name."""
    query: CalendarQuery = call.query
    position = read_cursor(query.cursor, str)
    after = "" if position is None else str(position[0])
    rows = calendars.list_calendars(call.session, actor=call.actor, after=after, limit=query.limit + 1)
    page, next_cursor = cut(rows, query.limit, lambda row: (row.name,))
    return Listed[CalendarOut](items=[CalendarOut(**_members(row)) for row in page], next_cursor=next_cursor)


@resource.post("/calendars", body=NewCalendar, answer=CalendarDetail, right=ADMIN, status=201)
def add_calendar(call: Call, body: NewCalendar) -> Made:
    """Make a calendar."""
    calendar = calendars.put_calendar(
        call.session, body.name, _draft(call, body), actor=call.actor, clock=now_ms, is_new=True
    )
    return Made(_detail(call, calendar), f"/calendars/{quote(calendar.name, safe='')}")


@resource.get("/calendars/<name>", answer=CalendarDetail, etag=True)
def get_calendar(call: Call, name: str) -> CalendarDetail:
    """Return a calendar with its days, its versions and the jobs that go by it."""
    return _detail(call, calendars.get_calendar(call.session, name, actor=call.actor))


@resource.put("/calendars/<name>", body=CalendarIn, answer=CalendarDetail, right=ADMIN, etag=True, lock=_lock)
def set_calendar(call: Call, name: str, body: CalendarIn) -> CalendarDetail:
    """Make a calendar, or replace what it says; its jobs are planned anew."""
    draft = _draft(call, body)
    calendar = calendars.put_calendar(call.session, name, draft, actor=call.actor, clock=now_ms)
    return _detail(call, calendar)


@resource.delete("/calendars/<name>", right=ADMIN, lock=_lock)
def delete_calendar(call: Call, name: str) -> None:
    """Delete a calendar that no job names."""
    calendars.remove_calendar(call.session, name, actor=call.actor, clock=now_ms)


def _read_days(_call: Call, name: str, body: CalendarImport) -> CountryDays:
    return read_days(Source(body.country, body.years, body.ics, body.csv))


@resource.post(
    "/calendars/<name>/import", body=CalendarImport, answer=CalendarDetail, right=ADMIN, prepare=_read_days
)
def import_days(call: Call, name: str, body: CalendarImport, preparation: CountryDays) -> CalendarDetail:
    """Take the holidays and make-up workdays of a country or a file into a calendar, which is made if new."""
    calendar = calendars.import_days(
        call.session,
        name,
        preparation,
        actor=call.actor,
        clock=now_ms,
        replace=body.replace,
        readable_by_java=call.config.shared_with_java,
    )
    return _detail(call, calendar)


@resource.get("/calendars/<name>/days", answer=CalendarDays, query=DaysQuery)
def list_days(call: Call, name: str) -> CalendarDays:
    """Return each day of a year with its kind and name."""
    calendar = calendars.get_calendar(call.session, name, actor=call.actor).calendar
    days = [
        CalendarDay(
            date=row.day.isoformat(),
            kind=row.kind,
            name=row.name,
            by_rule=row.by_rule,
            is_makeup=row.is_makeup,
            is_known=row.is_known,
        )
        for row in days_of_year(calendar, call.query.year)
    ]
    return CalendarDays(items=days)


def _draft(call: Call, body: CalendarIn) -> CalendarDraft:
    return CalendarDraft(
        body.weekend,
        body.days,
        body.names,
        body.valid_until or "",
        body.unknown,
        readable_by_java=call.config.shared_with_java,
    )


def _detail(call: Call, row: NamedCalendar) -> CalendarDetail:
    draft = draft_of(row.calendar)
    jobs = calendars.list_jobs(call.session, row.name, actor=call.actor)
    return CalendarDetail(
        **_members(row),
        days={day: DayKind(kind) for day, kind in draft.days.items()},
        names=dict(draft.names),
        versions=[_version(version) for version in calendars.list_versions(call.session, row)],
        used_by=[job.id for job in jobs],
    )


def _version(row: StoredCalendar) -> CalendarVersionOut:
    counts = _counts(row.calendar)
    return CalendarVersionOut(number=row.number, since=row.from_ms, author=row.author, **counts)


def _members(row: NamedCalendar) -> dict[str, Any]:
    return {
        "name": row.name,
        "weekend": draft_of(row.calendar).weekend,
        "unknown": row.calendar.unknown,
        "version": row.number,
        "changed_at": row.from_ms,
        "changed_by": row.author,
        "jobs": row.jobs,
        **_counts(row.calendar),
    }


def _counts(calendar: Calendar) -> dict[str, Any]:
    counts = count_kinds(calendar)
    return {
        "workdays": counts[DayKind.WORKDAY],
        "holidays": counts[DayKind.HOLIDAY],
        "valid_until": None if calendar.valid_until is None else calendar.valid_until.isoformat(),
    }
