"""`xxl_job_log` as the console lists and clears it; what the pipeline needs is in ``logs``."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import IntEnum

from sqlalchemy import ColumnElement, and_, delete, func, or_, select
from sqlalchemy.orm import Session, defer

from app.clock import Millis
from app.db import affected
from app.domain.enums import HandleCode, TriggerCode
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.store import fires, logs
from app.store.paging import Page, fetch_page

#: counting stops here: an exact count of a long log costs more than the page itself
COUNT_MAX = 10_000
DELETE_BATCH = 1_000


class LogStatus(IntEnum):
    """The states one can search for; any other number means all."""

    ALL = -1
    SUCCESS = 1
    FAILED = 2
    RUNNING = 3


@dataclass(frozen=True, slots=True)
class LogFilter:
    """What to list; 0 and None mean all. A job, where given, counts instead of the group."""

    group_id: int = 0
    job_id: int = 0
    status: int = LogStatus.ALL
    from_ms: Millis | None = None
    to_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class Clearing:
    """Which rows to clear: of a group and a job (0: any), older than an instant, or all but the newest; none beyond an id."""

    group_id: int
    job_id: int
    before_ms: Millis | None = None
    keep: int | None = None
    #: with it, ``before_ms`` holds the oldest row that is kept: of its second only rows of smaller ids go
    kept_id: int | None = None
    up_to_id: int | None = None


def find_log(session: Session, log_id: int) -> JobLog | None:
    """Return a log row or None."""
    return session.get(JobLog, log_id)


def find_successors(session: Session, log_id: int, *, group_ids: Collection[int] | None, limit: int) -> list[JobLog]:
    """Return the runs a run has led to, its children and retries, in these groups (None: in all), ids ascending, without their notes."""
    query = select(JobLog).options(defer(JobLog.trigger_msg), defer(JobLog.handle_msg)).where(JobLog.source_log_id == log_id)
    if group_ids is not None:
        query = query.where(JobLog.job_group.in_(list(group_ids)))
    return list(session.scalars(query.order_by(JobLog.id).limit(limit)))


def list_logs(
    session: Session,
    wanted: LogFilter,
    *,
    group_ids: Collection[int] | None,
    start: int,
    length: int,
    count_to: int | None = COUNT_MAX,
) -> Page[JobLog]:
    """Return a page of the runs of these groups (None: of all), newest first; the count stops at ``count_to``, None: at the last."""
    query = select(JobLog).where(*_conditions(wanted, group_ids)).order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    return fetch_page(session, query, start=start, length=length, count_to=count_to)


def clear_batch(session: Session, clearing: Clearing) -> int:
    """Delete up to DELETE_BATCH rows with their fires and alarms; return how many."""
    scope = _to_clear(clearing if clearing.keep is None else fixed(session, clearing))
    ids = list(session.scalars(select(JobLog.id).where(*scope).order_by(JobLog.id).limit(DELETE_BATCH).with_for_update()))
    return _delete(session, ids)


def fixed(session: Session, clearing: Clearing) -> Clearing:
    """Return the same clearing by bounds alone: rows that come later stay, and "the newest" are those of now."""
    newest_id = session.scalar(select(func.max(JobLog.id))) or 0
    clearing = replace(clearing, up_to_id=newest_id)
    if not clearing.keep:
        return clearing
    scope = _scope(clearing.group_id, clearing.job_id)
    newest = select(JobLog.trigger_time, JobLog.id).where(*scope).order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    kept = session.execute(newest.offset(clearing.keep - 1).limit(1)).first()
    if kept is None:
        return replace(clearing, keep=None, up_to_id=0)
    return replace(clearing, keep=None, before_ms=kept.trigger_time, kept_id=kept.id)


def count_to_clear(session: Session, clearing: Clearing) -> int:
    """Return how many rows a fixed clearing would delete."""
    return session.scalar(select(func.count()).select_from(JobLog).where(*_to_clear(clearing))) or 0


def _to_clear(clearing: Clearing) -> list[ColumnElement[bool]]:
    scope = _scope(clearing.group_id, clearing.job_id)
    if clearing.up_to_id is not None:
        scope.append(JobLog.id <= clearing.up_to_id)
    if clearing.kept_id is not None:
        older = and_(JobLog.trigger_time == clearing.before_ms, JobLog.id < clearing.kept_id)
        scope.append(or_(JobLog.trigger_time < clearing.before_ms, older))
    elif clearing.before_ms is not None:
        scope.append(JobLog.trigger_time <= clearing.before_ms)
    return scope


def _delete(session: Session, log_ids: list[int]) -> int:
    if log_ids:
        affected(session, delete(JobLog).where(JobLog.id.in_(log_ids)))
        affected(session, delete(Alarm).where(Alarm.log_id.in_(log_ids)))
        fires.delete_of_logs(session, log_ids)
    return len(log_ids)


def _scope(group_id: int, job_id: int) -> list[ColumnElement[bool]]:
    scope: list[ColumnElement[bool]] = []
    if group_id > 0:
        scope.append(JobLog.job_group == group_id)
    if job_id > 0:
        scope.append(JobLog.job_id == job_id)
    return scope


def _conditions(wanted: LogFilter, group_ids: Collection[int] | None) -> list[ColumnElement[bool]]:
    conditions = _scope(0 if wanted.job_id > 0 else wanted.group_id, wanted.job_id)
    if group_ids is not None:
        conditions.append(JobLog.job_group.in_(list(group_ids)))
    if wanted.from_ms is not None:
        conditions.append(JobLog.trigger_time >= wanted.from_ms)
    if wanted.to_ms is not None:
        conditions.append(JobLog.trigger_time <= wanted.to_ms)
    return conditions + _of_status(wanted.status)


def _of_status(status: int) -> list[ColumnElement[bool]]:
    """Source: spec/scheduling.md, 6.2, the console's own classification."""
    if status == LogStatus.SUCCESS:
        return [JobLog.handle_code == HandleCode.SUCCESS]
    if status == LogStatus.FAILED:
        return [logs.is_failed()]
    if status == LogStatus.RUNNING:
        return [JobLog.trigger_code == TriggerCode.ACCEPTED, JobLog.handle_code == HandleCode.NONE]
    return []
