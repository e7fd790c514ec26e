"""`xxl_job_log` as the console lists and clears it; what the pipeline needs is in ``logs``."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select
from sqlalchemy.orm import Session, defer

from app.clock import Millis
from app.db import affected
from app.domain.enums import HandleCode, TriggerCode, TriggerType
from app.domain.list_orders import UNSORTED, Order
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.store import fires, logs
from app.store.ordering import Expression
from app.store.paging import Page, fetch_page
from app.store.planner_hints import unindexed_on_mysql, unindexed_on_sqlite

#: counting stops here: an exact count of a long log costs more than the page itself
COUNT_MAX = 10_000
#: the same for a page whose rows must be read to be counted: but for failures no index holds both a group or a job and a result
COUNT_READ_MAX = 1_000
DELETE_BATCH = 1_000
#: rows a statement names by their ids
ROWS_AT_ONCE = 1_000
#: the one order beside the list's own that stays quick however long the log is
OLDEST_FIRST = Order("time")
#: newest runs of a job that are looked through
LOOKED_AT = 1_000


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
    #: OLDEST_FIRST, or any other: newest first
    order: Order = UNSORTED


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


def find_used_params(session: Session, job_id: int, *, group_id: int, limit: int) -> list[tuple[str, int]]:
    """Return the parameters a job was run with by hand in its group, each with its newest run, newest first; among LOOKED_AT runs."""
    newest = select(JobLog.id, JobLog.executor_param, JobLog.trigger_type).where(
        JobLog.job_id == job_id, JobLog.job_group == group_id
    )
    looked_at = newest.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(LOOKED_AT).subquery()
    by_hand = select(looked_at.c.executor_param, func.max(looked_at.c.id).label("log_id"))
    by_hand = by_hand.where(looked_at.c.trigger_type == TriggerType.MANUAL, looked_at.c.executor_param != "")
    grouped = (
        by_hand.group_by(looked_at.c.executor_param).order_by(func.max(looked_at.c.id).desc()).limit(limit)
    )
    return [(row.executor_param, row.log_id) for row in session.execute(grouped)]


def find_newest_id(session: Session, job_id: int) -> int:
    """Return the id of the newest run of a job; 0 where it never ran."""
    newest = (
        select(JobLog.id)
        .where(JobLog.job_id == job_id)
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
        .limit(1)
    )
    return session.scalar(newest) or 0


def find_manual_id(session: Session, job_id: int, *, after_id: int) -> int:
    """Return the id of the first run by hand of a job behind another run; 0 where there is none."""
    later = select(func.min(JobLog.id)).where(
        JobLog.id > after_id, JobLog.job_id == job_id, JobLog.trigger_type == TriggerType.MANUAL
    )
    return session.scalar(later) or 0


def find_successors(
    session: Session, log_id: int, *, group_ids: Collection[int] | None, limit: int
) -> list[JobLog]:
    """Return the runs a run has led to, its children and retries, in these groups (None: in all), ids ascending, without their notes."""
    query = (
        select(JobLog)
        .options(defer(JobLog.trigger_msg), defer(JobLog.handle_msg))
        .where(JobLog.source_log_id == log_id)
    )
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
    """Return a page of the runs of these groups (None: of all), in the order wanted; the count stops at ``count_to``, None: at the last."""
    ids = fetch_page(session, _ordered_ids(wanted, group_ids), start=start, length=length, count_to=count_to)
    rows: list[JobLog] = []
    for first in range(0, len(ids.rows), ROWS_AT_ONCE):  # scripts ask for long pages
        rows += logs.find_logs(session, ids.rows[first : first + ROWS_AT_ONCE])
    return Page(_in_order(ids.rows, rows), ids.total, ids.capped)


def list_ids(
    session: Session, wanted: LogFilter, *, group_ids: Collection[int] | None, limit: int
) -> list[int]:
    """Return the ids of the first runs of the same list, in its order."""
    return list(session.scalars(_ordered_ids(wanted, group_ids).limit(limit)))


def find_listed(
    session: Session, log_ids: Collection[int], *, group_ids: Collection[int] | None
) -> list[JobLog]:
    """Return those of the runs that still exist, in the order of their ids here, without their trigger notes."""
    query = select(JobLog).options(defer(JobLog.trigger_msg)).where(JobLog.id.in_(log_ids))
    if group_ids is not None:
        query = query.where(JobLog.job_group.in_(list(group_ids)))
    return _in_order(log_ids, session.scalars(query))


def page_count_max(wanted: LogFilter, group_ids: Collection[int] | None) -> int:
    """Return how far a page counts the runs it lists: as far as it may read the rows themselves, or else the index."""
    reads_rows = wanted.status != LogStatus.ALL and (
        group_ids is not None or wanted.group_id > 0 or wanted.job_id > 0
    )
    return COUNT_READ_MAX if reads_rows else COUNT_MAX


def clear_batch(session: Session, clearing: Clearing) -> int:
    """Delete up to DELETE_BATCH rows with their fires and alarms; return how many."""
    scope = _to_clear(clearing if clearing.keep is None else fixed(session, clearing))
    ids = list(
        session.scalars(
            select(JobLog.id).where(*scope).order_by(JobLog.id).limit(DELETE_BATCH).with_for_update()
        )
    )
    return _delete(session, ids)


def fixed(session: Session, clearing: Clearing) -> Clearing:
    """Return the same clearing by bounds alone: rows that come later stay, and "the newest" are those of now."""
    newest_id = session.scalar(select(func.max(JobLog.id))) or 0
    clearing = replace(clearing, up_to_id=newest_id)
    if not clearing.keep:
        return clearing
    scope = _scope(clearing.group_id, clearing.job_id)
    newest = (
        select(JobLog.trigger_time, JobLog.id)
        .where(*scope)
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    )
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


def _in_order(log_ids: Collection[int], rows: Iterable[JobLog]) -> list[JobLog]:
    """Return the rows in the order of these ids; one that is gone is left out."""
    found = {log.id: log for log in rows}
    return [found[log_id] for log_id in log_ids if log_id in found]


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


def _ordered_ids(wanted: LogFilter, group_ids: Collection[int] | None) -> Select[tuple[int]]:
    """Return the query of a list: ids alone, which an index may hold, and of an offset nothing else is read."""
    group, job, time = _looked_for_by(wanted.status)
    conditions = _of_status(wanted.status)
    if wanted.job_id > 0:
        conditions.append(job == wanted.job_id)
    elif wanted.group_id > 0:
        conditions.append(group == wanted.group_id)
    if group_ids is not None:
        conditions.append(group.in_(list(group_ids)))
    if wanted.from_ms is not None:
        conditions.append(time >= wanted.from_ms)
    if wanted.to_ms is not None:
        conditions.append(time <= wanted.to_ms)
    columns: list[Expression] = [time, JobLog.id]
    order = columns if wanted.order == OLDEST_FIRST else [column.desc() for column in columns]
    return select(JobLog.id).where(*conditions).order_by(*order)


def _looked_for_by(status: int) -> tuple[Expression, Expression, Expression]:
    """Return group, job and time as the list is looked for by them: of the few runs under way all are read, by their result."""
    if status != LogStatus.RUNNING:
        return JobLog.job_group, JobLog.job_id, JobLog.trigger_time
    return (
        unindexed_on_sqlite(JobLog.job_group),
        unindexed_on_sqlite(JobLog.job_id),
        unindexed_on_sqlite(JobLog.trigger_time),
    )


def _of_status(status: int) -> list[ColumnElement[bool]]:
    """Source: docs/reference/scheduling.md, section 6.2, the console's own classification."""
    if status == LogStatus.SUCCESS:
        return [unindexed_on_mysql(JobLog.handle_code) == HandleCode.SUCCESS]
    if status == LogStatus.FAILED:
        return [logs.is_failed()]
    if status == LogStatus.RUNNING:
        return [JobLog.trigger_code == TriggerCode.ACCEPTED, JobLog.handle_code == HandleCode.NONE]
    return []
