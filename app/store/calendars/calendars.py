"""Statements on `xxl_job_calendar` and `xxl_job_calendar_version`, and the jobs that name a calendar."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.day_rule import EnteredRule, parse_rule
from app.domain.calendars.drafts import days_text
from app.models.calendar import CalendarVersion, JobCalendar
from app.models.job import Job
from app.store.calendars.rules import calendar_of


class StoredCalendar(NamedTuple):
    """A version of a calendar."""

    #: of the calendar
    id: int
    calendar: Calendar
    #: 1 for the first version
    number: int
    from_ms: Millis
    author: str


class NamingJob(NamedTuple):
    """A job whose rule names a calendar."""

    id: int
    name: str
    group_id: int
    rule: EnteredRule


class EndingCalendar(NamedTuple):
    """A calendar in use that does not know the coming days."""

    calendar: Calendar
    #: how many name it
    jobs: int


_VERSION = (
    CalendarVersion.calendar_id,
    CalendarVersion.number,
    CalendarVersion.from_ms,
    CalendarVersion.author,
    CalendarVersion.name,
    CalendarVersion.weekend,
    CalendarVersion.days,
    CalendarVersion.valid_until,
    CalendarVersion.unknown,
)
_LATEST = select(*_VERSION).join(JobCalendar, JobCalendar.version_id == CalendarVersion.id)


def list_calendars(session: Session, *, after: str = "", limit: int | None = None) -> list[StoredCalendar]:
    """Return the latest versions of the calendars, by name, after this one."""
    later = _LATEST.where(JobCalendar.name > after).order_by(JobCalendar.name).limit(limit)
    return [_calendar_of(row) for row in bulk.read_rows(session, later)]


def find_calendar(session: Session, name: str) -> StoredCalendar | None:
    """Return the latest version of a calendar."""
    if not _may_exist(name):
        return None
    rows = bulk.read_rows(session, _LATEST.where(JobCalendar.name == name))
    return _calendar_of(rows[0]) if rows else None


def find_by_id(session: Session, calendar_id: int) -> StoredCalendar | None:
    """Return the latest version of a calendar by its id."""
    rows = bulk.read_rows(session, _LATEST.where(JobCalendar.id == calendar_id))
    return _calendar_of(rows[0]) if rows else None


def list_versions(session: Session, calendar_id: int, *, limit: int) -> list[StoredCalendar]:
    """Return the versions of a calendar, the newest first."""
    of_it = select(*_VERSION).where(CalendarVersion.calendar_id == calendar_id)
    rows = bulk.read_rows(session, of_it.order_by(CalendarVersion.number.desc()).limit(limit))
    return [_calendar_of(row) for row in rows]


def lock_calendar(session: Session, name: str) -> JobCalendar | None:
    """Lock and return a calendar."""
    if not _may_exist(name):
        return None
    query = select(JobCalendar).where(JobCalendar.name == name).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).first()


def hold_calendar(session: Session, name: str) -> bool:
    """Return whether a calendar exists; it is protected from deletion until the end of the transaction."""
    query = select(JobCalendar.id).where(JobCalendar.name == name).with_for_update(read=True)
    return _may_exist(name) and session.scalar(query) is not None


def _may_exist(name: str) -> bool:
    """Whether a database can be asked about a name: PostgreSQL refuses one with a zero character."""
    return "\x00" not in name


def list_names(session: Session) -> list[str]:
    """Return the names of all calendars, ascending."""
    return list(session.scalars(select(JobCalendar.name).order_by(JobCalendar.name)))


def count_calendars(session: Session) -> int:
    """Return how many calendars there are."""
    return session.scalar(select(func.count()).select_from(JobCalendar)) or 0


def add_version(
    session: Session, row: JobCalendar, calendar: Calendar, *, number: int, from_ms: Millis, author: str
) -> None:
    """Store a version of a locked or new calendar, and make it the latest."""
    version = CalendarVersion(
        calendar_id=row.id,
        name=calendar.name,
        number=number,
        from_ms=from_ms,
        weekend=",".join(str(weekday) for weekday in sorted(calendar.weekend)),
        days=days_text(calendar),
        valid_until="" if calendar.valid_until is None else calendar.valid_until.isoformat(),
        unknown=calendar.unknown.value,
        author=author,
    )
    session.add(version)
    session.flush()
    row.version_id = version.id
    session.flush()


def delete_calendar(session: Session, calendar_id: int) -> None:
    """Delete a calendar; its versions stay, because the past goes by them."""
    session.execute(delete(JobCalendar).where(JobCalendar.id == calendar_id))


def list_naming(session: Session, names: Collection[str] | None = None) -> list[NamingJob]:
    """Return the jobs whose rules name one of these calendars (None: any), ids ascending."""
    query = select(Job.id, Job.job_desc, Job.job_group, Job.calendar).where(Job.calendar.is_not(None))
    jobs = list[NamingJob]()
    for job_id, name, group_id, text in bulk.read_rows(session, query.order_by(Job.id)):
        rule = parse_rule(text)
        if rule is not None and (names is None or rule.name in names):
            jobs.append(NamingJob(job_id, name, group_id, rule))
    return jobs


def list_ending(session: Session, today: date) -> list[EndingCalendar]:
    """Return the calendars that jobs name and that do not know the coming days, by name."""
    rows = [row for row in list_calendars(session) if row.calendar.is_ending(today)]
    jobs = [job.rule.name for job in list_naming(session)] if rows else []
    ending = [EndingCalendar(row.calendar, jobs.count(row.calendar.name)) for row in rows]
    return [row for row in ending if row.jobs]


def _calendar_of(row: Sequence[Any]) -> StoredCalendar:
    calendar_id, number, from_ms, author, *values = row
    return StoredCalendar(calendar_id, calendar_of(*values), number, from_ms, author)
