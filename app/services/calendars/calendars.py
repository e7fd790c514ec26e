"""Calendars: list, set, import days, delete, and the jobs that go by them.

Administrators change them; everyone who may see any jobs reads them. Each change is a new version, which
holds from its commit on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor, Right, require_admin
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.drafts import (
    DAY_NAME_MAX,
    CalendarDraft,
    check_name,
    draft_of,
    is_same,
    read_draft,
    summary,
)
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.calendar import JobCalendar
from app.pipeline.calendars.changes import begin_change
from app.services.auditing import audit
from app.services.calendars.days import CountryDays
from app.store.base import locks
from app.store.calendars import calendars as store
from app.store.calendars.calendars import NamingJob, StoredCalendar

MISSING = N_("There is no such calendar")
WITHOUT_JAVA = N_("A Java admin on the same database does not know calendars (XXL_JOB_SHARED_WITH_JAVA)")
#: calendars of an installation; versions that a page lists, and jobs that an error names
CALENDARS_MAX, VERSIONS_LISTED, JOBS_NAMED = 500, 50, 5
#: width of the column
_AUTHOR_MAX = 64
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class NamedCalendar:
    """The latest version of a calendar."""

    id: int
    calendar: Calendar
    #: 1 for the first version
    number: int
    #: it holds from then on
    from_ms: Millis
    author: str
    #: how many jobs name it
    jobs: int = 0

    @property
    def name(self) -> str:
        """Its name."""
        return self.calendar.name


def list_calendars(
    session: Session, *, actor: Actor, after: str = "", limit: int | None = None
) -> list[NamedCalendar]:
    """Return the calendars by name, after this one; none for an actor who may see no jobs."""
    if not actor.has_anywhere(Right.VIEW):
        return []
    rows = store.list_calendars(session, after=after, limit=limit)
    jobs = [job.rule.name for job in store.list_naming(session, {row.calendar.name for row in rows})]
    return [_with_name(row, jobs.count(row.calendar.name)) for row in rows]


def get_calendar(session: Session, name: str, *, actor: Actor) -> NamedCalendar:
    """Return a calendar; raises NotFound."""
    row = store.find_calendar(session, name.strip()) if actor.has_anywhere(Right.VIEW) else None
    if row is None:
        raise NotFound(MISSING)
    return _with_name(row, len(store.list_naming(session, {row.calendar.name})))


def get_by_id(session: Session, calendar_id: int, *, actor: Actor) -> NamedCalendar:
    """Return a calendar by its id; raises NotFound."""
    row = store.find_by_id(session, calendar_id) if actor.has_anywhere(Right.VIEW) else None
    if row is None:
        raise NotFound(MISSING)
    return _with_name(row, len(store.list_naming(session, {row.calendar.name})))


def list_jobs(session: Session, name: str, *, actor: Actor) -> list[NamingJob]:
    """Return the jobs whose rules name a calendar and that the actor may see."""
    return [job for job in store.list_naming(session, {name}) if actor.may(job.group_id, Right.VIEW)]


def list_versions(session: Session, calendar: NamedCalendar) -> list[StoredCalendar]:
    """Return the versions of a calendar, the newest first."""
    return store.list_versions(session, calendar.id, limit=VERSIONS_LISTED)


def state_of(calendar: NamedCalendar) -> dict[str, object]:
    """Return the state that a form shows: each change has another version."""
    return {"id": calendar.id, "version": calendar.number}


def put_calendar(
    session: Session,
    name: str,
    draft: CalendarDraft,
    *,
    actor: Actor,
    clock: Clock,
    loaded: str = "",
    is_new: bool = False,
) -> NamedCalendar:
    """Make a calendar or replace what it says; nothing changes if it says that already.

    ``is_new``: there must be none of this name. Raises InvalidInput with the errors of all fields,
    PermissionDenied, Conflict and ChangedMeanwhile.
    """
    require_admin(actor)
    _require_no_java(draft.readable_by_java)
    calendar = read_draft(name, draft)
    locks.take_schedule_lock(session)
    present = store.find_calendar(session, calendar.name)
    if present is not None:
        if is_new:
            raise Conflict(N_("There is a calendar %(name)s already", name=present.calendar.name))
        require_unchanged(loaded, state_of(_with_name(present)))
    return _write(session, calendar, present, actor=actor, clock=clock)


def import_days(
    session: Session,
    name: str,
    country_days: CountryDays,
    *,
    actor: Actor,
    clock: Clock,
    replace: bool = False,
    readable_by_java: bool = False,
) -> NamedCalendar:
    """Take days into a calendar, which is made if there is none; those of other years stay.

    ``replace``: no other days stay. Raises InvalidInput and PermissionDenied.
    """
    require_admin(actor)
    _require_no_java(readable_by_java)
    name = check_name(name)
    locks.take_schedule_lock(session)
    present = store.find_calendar(session, name)
    former = None if present is None else present.calendar
    new_calendar = _merge(name, former, country_days, replace=replace)
    return _write(session, read_draft(name, draft_of(new_calendar)), present, actor=actor, clock=clock)


def remove_calendar(session: Session, name: str, *, actor: Actor, clock: Clock, loaded: str = "") -> None:
    """Delete a calendar; its versions stay for the past. Raises NotFound, and Conflict while jobs use it."""
    require_admin(actor)
    locks.take_schedule_lock(session)
    row = store.lock_calendar(session, name.strip())
    present = store.find_calendar(session, row.name) if row is not None else None
    if row is None or present is None:
        raise NotFound(MISSING)
    require_unchanged(loaded, state_of(_with_name(present)))
    jobs = store.list_naming(session, {row.name})
    if jobs:
        names = ", ".join(f"{job.name} ({job.id})" for job in jobs[:JOBS_NAMED])
        names += " …" if len(jobs) > JOBS_NAMED else ""
        raise Conflict(N_("Jobs use this calendar: %(jobs)s", jobs=names))
    change = begin_change(session, (), clock=clock)
    store.delete_calendar(session, present.id)
    session.expunge(row)
    change.finish(session)
    changes = {"name": present.calendar.name, **summary(present.calendar)}
    _record(session, "calendar.remove", present.id, changes, actor=actor, now_ms=change.now_ms)


def remove_by_id(session: Session, calendar_id: int, *, actor: Actor, clock: Clock) -> None:
    """Delete a calendar as ``remove_calendar`` does."""
    name = next((row.calendar.name for row in store.list_calendars(session) if row.id == calendar_id), "")
    remove_calendar(session, name, actor=actor, clock=clock)


def _write(
    session: Session, calendar: Calendar, present: StoredCalendar | None, *, actor: Actor, clock: Clock
) -> NamedCalendar:
    """Store a version, unless it says what the present one does, and replan the jobs that name it.

    The caller has the schedule lock. Rows of jobs are locked before that of the calendar, as a save does.
    """
    job_ids = [job.id for job in store.list_naming(session, {calendar.name})]
    if present is not None and is_same(present.calendar, calendar):
        return _with_name(present, len(job_ids))
    change = begin_change(session, job_ids, clock=clock, of_calendar=True)
    row = store.lock_calendar(session, calendar.name) or _new_row(session, calendar.name)
    number, author = 1 if present is None else present.number + 1, actor.username[:_AUTHOR_MAX]
    store.add_version(session, row, calendar, number=number, from_ms=change.now_ms, author=author)
    change.finish(session)
    changes = {"name": calendar.name, **_changes(None if present is None else present.calendar, calendar)}
    _record(session, "calendar.set", row.id, changes, actor=actor, now_ms=change.now_ms)
    return NamedCalendar(row.id, calendar, number, change.now_ms, author, len(job_ids))


def _new_row(session: Session, name: str) -> JobCalendar:
    if store.count_calendars(session) >= CALENDARS_MAX:
        raise Conflict(N_("There are %(limit)s calendars already; delete one first", limit=CALENDARS_MAX))
    row = JobCalendar(name=name)
    session.add(row)
    try:
        session.flush()
    except IntegrityError as exc:
        raise Conflict(N_("Another user has just made this calendar")) from exc
    return row


def _merge(name: str, present: Calendar | None, country_days: CountryDays, *, replace: bool) -> Calendar:
    """Return a calendar with imported days, in place of all others of their years; ``replace``: of all."""
    names = {day: text[:DAY_NAME_MAX].strip() for day, text in country_days.names.items()}
    if present is None:
        return Calendar(name, country_days.weekend, country_days.days, names, country_days.valid_until)
    years = {day.year for day in country_days.days}
    others = {} if replace else {day: kind for day, kind in present.days.items() if day.year not in years}
    return Calendar(
        name,
        country_days.weekend if replace else present.weekend,
        others | country_days.days,
        {day: text for day, text in present.names.items() if day in others} | names,
        country_days.valid_until if replace else _valid_until(present, country_days),
        present.unknown,
    )


def _valid_until(present: Calendar, country_days: CountryDays) -> date | None:
    """Return the last day that a calendar knows with imported days; a year between is not known."""
    until = country_days.valid_until
    if until is None or not country_days.days:
        return present.valid_until
    if present.valid_until is None:  # how far it goes was never entered
        return max([until, *present.days])
    begins = date(min(country_days.days).year, 1, 1)
    return max(until, present.valid_until) if begins <= present.valid_until + _DAY else present.valid_until


def _require_no_java(readable_by_java: bool) -> None:
    if readable_by_java:
        raise InvalidInput("name", WITHOUT_JAVA)


def _with_name(row: StoredCalendar, jobs: int = 0) -> NamedCalendar:
    return NamedCalendar(row.id, row.calendar, row.number, row.from_ms, row.author, jobs)


def _changes(before: Calendar | None, after: Calendar) -> dict[str, object]:
    """Return what is audited: numbers of days, not each of them."""
    former = {} if before is None else summary(before)
    changes: dict[str, object] = dict(audit.difference(former, summary(after)))
    if before is not None:
        changes["days_changed"] = _count_changed(before, after)
    return changes


def _count_changed(before: Calendar, after: Calendar) -> int:
    days = before.days.keys() | after.days.keys()
    return sum(
        before.days.get(day) != after.days.get(day) or before.names.get(day) != after.names.get(day)
        for day in days
    )


def _record(
    session: Session,
    action: str,
    calendar_id: int,
    changes: Mapping[str, object],
    *,
    actor: Actor,
    now_ms: Millis,
) -> None:
    target = ("calendar", calendar_id)
    audit.record(session, action, actor=actor, now_ms=now_ms, target=target, changes=changes)
