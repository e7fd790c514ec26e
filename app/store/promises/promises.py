"""Statements on `xxl_job_promise`: the promises that hold, and the jobs and groups that they come from."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, func, literal, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk, deletion
from app.domain.enums import HandleCode, PromiseKind, TriggerStatus
from app.domain.promises.judgement import UsualRun
from app.domain.promises.promise import Escalation, read_escalation
from app.models.base import zone_name
from app.models.completeness import JobSpan
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import JobPromise, PromiseCheck
from app.settings.parsers import is_zone
from app.store.fires.logs import NO_BACKFILL

#: successes of a job that its usual durations are computed from
USUAL_RUNS = 5_000


class PromisingJob(NamedTuple):
    """A job with promises of its own or of its group."""

    job_id: int
    group_id: int
    schedule_type: str
    #: never empty
    time_zone: str
    #: as stored
    own: str | None
    of_group: str | None
    #: 0: no history has begun
    span_id: int


def _has_promises(column: ColumnElement[str | None]) -> ColumnElement[bool]:
    return and_(column.is_not(None), column.not_in(["", "[]"]))


def find_promising(session: Session, job_ids: Collection[int] | None = None) -> dict[int, PromisingJob]:
    """Return the jobs with promises, by id; None: of all jobs."""
    open_span = and_(JobSpan.job_id == Job.id, JobSpan.until_ms.is_(None))
    query = (
        select(
            Job.id,
            Job.job_group,
            Job.schedule_type,
            func.coalesce(func.nullif(Job.time_zone, ""), literal(zone_name())),
            Job.promises,
            Group.promises,
            func.coalesce(JobSpan.id, 0),
        )
        .outerjoin(Group, Group.id == Job.job_group)
        .outerjoin(JobSpan, open_span)
        .where(or_(_has_promises(Job.__table__.c.promises), _has_promises(Group.__table__.c.promises)))
        .order_by(Job.id, JobSpan.id)
    )
    if job_ids is not None:
        query = query.where(Job.id.in_(list(job_ids)))
    jobs = (PromisingJob._make(row) for row in bulk.read_rows(session, query))
    return {job.job_id: job if is_zone(job.time_zone) else _in_zone(job) for job in jobs}


def _in_zone(job: PromisingJob) -> PromisingJob:
    """Return a job whose zone is unknown, as another program has stored it, with that of the installation."""
    return job._replace(time_zone=zone_name())


class StoredPromise(NamedTuple):
    """A promise that holds, as planning reads it."""

    id: int
    job_id: int
    number: int
    kind: str
    definition: str
    since_ms: Millis
    planned_until_ms: Millis
    span_id: int
    usual_at_ms: Millis


_STORED = tuple(getattr(JobPromise, name) for name in StoredPromise._fields)


def find_stored(session: Session) -> list[StoredPromise]:
    """Return all promises that hold, by job and number."""
    query = select(*_STORED).order_by(JobPromise.job_id, JobPromise.number)
    return [StoredPromise._make(row) for row in bulk.read_rows(session, query)]


def find_unwatched(session: Session) -> list[StoredPromise]:
    """Return the promises of a success every so often whose check is lost."""
    check = exists().where(PromiseCheck.job_id == JobPromise.job_id, PromiseCheck.number == JobPromise.number)
    query = select(*_STORED).where(JobPromise.kind == PromiseKind.SUCCEEDS_EVERY.value, ~check)
    return [StoredPromise._make(row) for row in bulk.read_rows(session, query)]


def lock_promises(session: Session, job_ids: Collection[int]) -> dict[tuple[int, int], JobPromise]:
    """Lock the promises of jobs; return them by job id and number."""
    query = (
        select(JobPromise)
        .where(JobPromise.job_id.in_(sorted(job_ids)))
        .order_by(JobPromise.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return {(row.job_id, row.number): row for row in session.scalars(query)}


def insert_promises(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert promises; one that another node has inserted meanwhile stays as it is."""
    bulk.insert_ignore(session, JobPromise, rows)


def delete_promises(session: Session, promises: Collection[StoredPromise]) -> None:
    """Delete promises with their checks."""
    keys = {(promise.job_id, promise.number) for promise in promises}
    columns = (PromiseCheck.id, PromiseCheck.job_id, PromiseCheck.number)
    of_jobs = select(*columns).where(PromiseCheck.job_id.in_({job_id for job_id, _number in keys}))
    check_ids = [row[0] for row in bulk.read_rows(session, of_jobs) if (row[1], row[2]) in keys]
    deletion.by_values(session, PromiseCheck, "id", check_ids)
    deletion.by_values(session, JobPromise, "id", [promise.id for promise in promises])


def find_successes(session: Session, job_id: int) -> list[UsualRun]:
    """Return the latest successes of a job with a known duration, newest first, without backfills."""
    query = (
        select(JobLog.trigger_time, JobLog.duration_ms)
        .where(
            JobLog.job_id == job_id,
            JobLog.handle_code == HandleCode.SUCCESS,
            JobLog.duration_ms.is_not(None),
            NO_BACKFILL,
        )
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
        .limit(USUAL_RUNS)
    )
    return [UsualRun(row[0], row[1]) for row in session.execute(query)]


def find_last_kept(session: Session, job_ids: Collection[int]) -> dict[tuple[int, int], Millis]:
    """Return job id and number -> when each promise of jobs was last kept; 0: not yet."""
    columns = (JobPromise.job_id, JobPromise.number, JobPromise.kept_ms)
    rows = bulk.read_rows(session, select(*columns).where(JobPromise.job_id.in_(list(job_ids))))
    return {(row[0], row[1]): row[2] for row in rows}


class EscalatingJob(NamedTuple):
    """A job as a new incident reads it."""

    group_id: int
    #: of the job, else of its group; None: there is none
    escalation: Escalation | None


def find_escalating(session: Session, job_ids: Collection[int]) -> dict[int, EscalatingJob]:
    """Return those of the jobs that exist with their escalations, by id."""
    query = select(Job.id, Job.job_group, Job.escalation, Group.escalation)
    query = query.outerjoin(Group, Group.id == Job.job_group).where(Job.id.in_(list(job_ids)))
    return {
        row[0]: EscalatingJob(row[1], read_escalation(row[2]) or read_escalation(row[3]))
        for row in bulk.read_rows(session, query)
    }


def is_switched_on(session: Session, job_id: int) -> bool:
    """Whether the schedule of a job is on."""
    return session.scalar(select(Job.trigger_status).where(Job.id == job_id)) == TriggerStatus.RUNNING
