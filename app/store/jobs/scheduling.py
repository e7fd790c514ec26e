"""Statements of the scan and the dispatch on jobs; those of the console are in ``listing``."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, case, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import read_scope
from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.domain.calendars.effective import JobRules
from app.domain.calendars.rule_book import RuleBook
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.schedule import RESTING, Schedule
from app.models.completeness import JobSpan
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.store.calendars import current_book


class DueJob(NamedTuple):
    """A job as the scan reads it."""

    id: int
    trigger_status: int
    trigger_next_time: Millis
    trigger_last_time: Millis
    schedule_type: str
    schedule_conf: str | None
    misfire_strategy: str
    time_zone: str
    not_before_ms: Millis
    not_after_ms: Millis
    last_fire_ms: Millis
    job_group: int
    #: 1: other jobs run after it
    has_followers: int = 0
    #: its day rule as JSON text; None: it runs on all days
    calendar: str | None = None
    #: of the misfire strategy RUN_ALL
    misfire_max: int = 100
    misfire_max_age_s: int = 86_400
    #: number of the rule book as it was read
    rule_number: int = 0
    #: first instant of a fixed rate with a calendar or blackouts; otherwise 0
    anchor_ms: Millis = 0


def schedule_of(job: DueJob, zone: str, book: RuleBook | None = None) -> Schedule:
    """Return a job's schedule; ``zone`` is the zone of schedules without one of their own.

    ``book``: calendars and blackouts to go by; None: those that held when the job was read.
    """
    book = current_book.of_number(job.rule_number) if book is None else book
    kind = (
        ScheduleType(job.schedule_type)
        if job.schedule_type in ScheduleType.__members__
        else ScheduleType.NONE
    )
    return Schedule(
        kind,
        job.schedule_conf or "",
        job.time_zone or zone,
        job.not_before_ms,
        job.not_after_ms,
        job.calendar or "",
        book.of_job(job.id, job.job_group, job.calendar, job.anchor_ms),
    )


def phased_schedule_of(job: DueJob, zone: str, book: RuleBook) -> Schedule:
    """Return a job's schedule; a fixed rate counts from its first instant, even without any rules."""
    schedule = schedule_of(job, zone, book)
    is_plain_rate = schedule.type is ScheduleType.FIX_RATE and schedule.rules is None
    return replace(schedule, rules=JobRules(anchor_ms=job.anchor_ms)) if is_plain_rate else schedule


#: the columns of a job among them
OF_JOB = DueJob._fields[:-2]
#: columns a plan depends on; it is void if one of them has changed since
_PLANNED_BY = (*(getattr(Job, name) for name in OF_JOB), current_book.NUMBER)
_DUE = (
    select(*_PLANNED_BY)
    .where(Job.trigger_status == TriggerStatus.RUNNING, Job.trigger_next_time <= bindparam("until_ms"))
    .order_by(Job.trigger_next_time, Job.id)
    .limit(bindparam("most"))
)


def find_due(*, until_ms: Millis, limit: int) -> list[DueJob]:
    """Return enabled jobs whose next time is up to ``until_ms``, earliest first; opens its own transaction.

    The ORDER BY matters: without it PostgreSQL's generic plan reads all jobs.
    """
    rows = single_statement.read(_DUE, {"until_ms": until_ms, "most": limit})
    return _anchor(None, [_due_job(row) for row in rows])


def find_beyond(session: Session, *, after_ms: Millis) -> list[DueJob]:
    """Return the jobs with an instant later than ``after_ms``.

    That is the next time of an enabled job, or the latest instant with a fire or a skip of any job.
    """
    running = and_(Job.trigger_status == TriggerStatus.RUNNING, Job.trigger_next_time > after_ms)
    later = select(*_PLANNED_BY).where(or_(running, Job.last_fire_ms > after_ms))
    rows = bulk.read_rows(session, later.order_by(Job.id))
    return _anchor(session, [_due_job(row) for row in rows])


_LOCKED = select(*_PLANNED_BY).where(among(Job.id)).order_by(Job.id).with_for_update()


def lock_planned(session: Session, job_ids: Collection[int]) -> dict[int, DueJob]:
    """Lock the jobs; return their current state, by id."""
    rows = bulk.read_among(session, _LOCKED, list(job_ids))
    return {job.id: job for job in _anchor(session, [_due_job(row) for row in rows])}


def find_planned(session: Session, job_ids: Collection[int]) -> dict[int, DueJob]:
    """Return the current state of the jobs, by id, without a lock."""
    rows = bulk.read_rows(session, select(*_PLANNED_BY).where(Job.id.in_(list(job_ids))))
    return {job.id: job for job in _anchor(session, [_due_job(row) for row in rows])}


def _due_job(row: Sequence[Any]) -> DueJob:
    return DueJob(*row)


#: whether a job has a schedule that is switched on
_IS_ON = and_(Job.trigger_status == TriggerStatus.RUNNING, Job.schedule_type != ScheduleType.NONE)


def find_to_replan(
    session: Session, job_ids: Collection[int] | None, *, ahead_of_ms: Millis, limit: int
) -> list[int]:
    """Return those of the jobs (None: all) that a change of their rules plans at once, ascending.

    Those with an instant that is read ahead, whose switch may be off by now, those of the given ones that are
    due, and at most ``limit`` others.
    """
    ahead = select(Job.id).where(Job.last_fire_ms > ahead_of_ms)
    others = select(Job.id).where(_IS_ON, Job.last_fire_ms <= ahead_of_ms).order_by(Job.id).limit(limit)
    if job_ids is None:
        ids = {*session.scalars(ahead), *session.scalars(others)}
    else:
        rows = bulk.read_among(session, _LAST, list(job_ids)) if job_ids else ()
        ids = {row[0] for row in rows if row[1] > ahead_of_ms or (row[2] and row[3] <= ahead_of_ms)}
        ids |= set([row[0] for row in rows if row[2] and row[0] not in ids][:limit])
    return sorted(ids)


_LAST = (
    select(
        Job.id,
        Job.last_fire_ms,
        case(
            (_IS_ON, 1),
            else_=0,
        ),
        Job.trigger_next_time,
    )
    .where(among(Job.id))
    .order_by(Job.id)
)


def find_switched_on(session: Session, *, after_id: int, limit: int) -> list[DueJob]:
    """Return jobs whose schedule is on, with a higher id, ascending."""
    rows = select(*_PLANNED_BY).where(_IS_ON, Job.id > after_id).order_by(Job.id).limit(limit)
    return _anchor(session, [_due_job(row) for row in bulk.read_rows(session, rows)])


def with_anchors(session: Session, due: Iterable[DueJob]) -> dict[int, DueJob]:
    """Return the jobs by id, all of a fixed rate with their first instants."""
    jobs = list(due)
    rates = {job.id for job in jobs if job.schedule_type == ScheduleType.FIX_RATE}
    return {job.id: job for job in _with_first(session, jobs, rates)}


def _anchor(session: Session | None, due: list[DueJob]) -> list[DueJob]:
    """Return the jobs, those of a fixed rate with a calendar or blackouts with their first instants."""
    rates = [job for job in due if job.schedule_type == ScheduleType.FIX_RATE]
    # One statement has read them, with one number.
    has_blackouts = bool(rates and current_book.of_number(rates[0].rule_number).blackouts)
    ids = {job.id for job in rates if has_blackouts or job.calendar}
    if session is None and ids:
        with read_scope() as own_session:
            return _with_first(own_session, due, ids)
    return due if session is None else _with_first(session, due, ids)


_ANCHORS = select(JobSpan.job_id, JobSpan.anchor_ms).where(among(JobSpan.job_id), JobSpan.until_ms.is_(None))


def _with_first(session: Session, due: list[DueJob], rate_ids: Collection[int]) -> list[DueJob]:
    """Return the jobs, these fixed rates with their first instants: of their history, else the next one."""
    if not rate_ids:
        return due
    anchors = {row[0]: row[1] for row in bulk.read_among(session, _ANCHORS, sorted(rate_ids))}
    return [
        job._replace(anchor_ms=anchors.get(job.id) or _known_next(job)) if job.id in rate_ids else job
        for job in due
    ]


def _known_next(job: DueJob) -> Millis:
    return 0 if job.trigger_next_time >= RESTING else job.trigger_next_time


def find_jobs(session: Session, job_ids: Collection[int]) -> dict[int, Job]:
    """Return those of the jobs that exist, by id."""
    return {job.id: job for job in session.scalars(select(Job).where(Job.id.in_(job_ids)))}


class JobName(NamedTuple):
    """Name and group of a job, for pages."""

    id: int
    job_group: int
    job_desc: str


_NAMES = select(Job.id, Job.job_group, Job.job_desc).where(among(Job.id))


def find_names(session: Session, job_ids: Collection[int]) -> dict[int, JobName]:
    """Return the names of those of the jobs that exist, by id."""
    if not job_ids:
        return {}
    rows = bulk.read_rows(session, _NAMES, {WANTED: list(job_ids)})
    return {row[0]: JobName._make(row) for row in rows}


class JobToRun(NamedTuple):
    """A job as the claim reads it."""

    id: int
    job_group: int
    executor_route_strategy: str | None
    executor_handler: str | None
    executor_param: str | None
    executor_block_strategy: str | None
    executor_timeout: int
    executor_fail_retry_count: int
    glue_type: str
    glue_source: str | None
    glue_updatetime: Millis | None
    #: empty: that of the installation
    time_zone: str
    #: 1: placeholders of the parameter are filled in
    fill_parameter: int = 0
    #: most runs at once; 0: no limit
    max_running: int = 0
    #: named limits as JSON text; None: none
    limits: str | None = None
    #: what it runs after as JSON text; None: nothing
    runs_after: str | None = None
    #: 1: other jobs run after it
    has_followers: int = 0
    #: number of the rule book as it was read
    rule_number: int = 0


#: columns of a job that its runs need
_RUN_BY = (*(getattr(Job, name) for name in JobToRun._fields[:-1]), current_book.NUMBER)
_TO_RUN = select(*_RUN_BY).where(among(Job.id))


def find_to_run(session: Session, job_ids: Collection[int]) -> dict[int, JobToRun]:
    """Return those of the jobs that exist as the claim reads them, by id."""
    rows = bulk.read_among(session, _TO_RUN, list(job_ids))
    return {row[0]: JobToRun._make(row) for row in rows}


_EDITED = select(Job.id, Job.update_time).where(among(Job.id))


def find_edited(session: Session, job_ids: Collection[int]) -> dict[int, Millis]:
    """Return job id -> when the job was edited last (0: unknown), of those that exist."""
    return {row[0]: row[1] or 0 for row in bulk.read_among(session, _EDITED, list(job_ids))}


def find_after_current_run(session: Session) -> list[int]:
    """Return the enabled fixed-delay jobs that wait for the result of a run."""
    query = select(Job.id).where(
        Job.trigger_status == TriggerStatus.RUNNING, Job.trigger_next_time == AFTER_THE_CURRENT_RUN
    )
    return list(session.scalars(query.order_by(Job.id)))
