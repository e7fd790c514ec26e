"""Runs as the console lists and clears them; the pipeline's statements on `xxl_job_log` are in ``logs``."""

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
#: the same where rows must be read to be counted: only failures have an index with group or job and result
COUNT_READ_MAX = 1_000
DELETE_BATCH = 1_000
#: ids in one statement
ROWS_AT_ONCE = 1_000
#: the only other order that is fast on a log of any length
OLDEST_FIRST = Order("time")
#: newest failures that are searched for those of one kind
KIND_MAX = 5_000
#: newest runs of a job that are searched
RECENT_RUNS_MAX = 1_000


class LogStatus(IntEnum):
    """Run states to filter by; any other number means all. The first three are the original's."""

    ALL = -1
    SUCCESS = 1
    #: of all kinds: all ended runs but successes, and those of one kind below
    FAILED = 2
    RUNNING = 3
    #: the handler reported a failure
    ONLY_FAILED = 4
    TIMED_OUT = 5
    KILLED = 6
    NOT_STARTED = 7
    WAITING = 8
    UNRESOLVED = 9


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Filter of the run list; 0 and None mean all. If a job is given, the group is ignored."""

    group_id: int = 0
    job_id: int = 0
    status: int = LogStatus.ALL
    from_ms: Millis | None = None
    to_ms: Millis | None = None
    #: any order but OLDEST_FIRST means newest first
    order: Order = UNSORTED


@dataclass(frozen=True, slots=True)
class Clearing:
    """Which rows to clear: of a group and a job (0: any), up to an instant or all but the newest ``keep``."""

    group_id: int
    job_id: int
    before_ms: Millis | None = None
    keep: int | None = None
    #: the oldest row to keep, of the second ``before_ms``: of that second only rows with smaller ids are
    #: cleared
    kept_id: int | None = None
    #: rows with higher ids are kept
    up_to_id: int | None = None


def find_log(session: Session, log_id: int) -> JobLog | None:
    """Return a log row or None."""
    return session.get(JobLog, log_id)


def find_used_params(session: Session, job_id: int, *, group_id: int, limit: int) -> list[tuple[str, int]]:
    """Return the parameters of a job's manual runs in its group, each with its newest run, newest first.

    Searches the newest RECENT_RUNS_MAX runs.
    """
    newest = select(JobLog.id, JobLog.executor_param, JobLog.trigger_type).where(
        JobLog.job_id == job_id, JobLog.job_group == group_id
    )
    recent = newest.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(RECENT_RUNS_MAX).subquery()
    by_hand = select(recent.c.executor_param, func.max(recent.c.id).label("log_id"))
    by_hand = by_hand.where(recent.c.trigger_type == TriggerType.MANUAL, recent.c.executor_param != "")
    grouped = by_hand.group_by(recent.c.executor_param).order_by(func.max(recent.c.id).desc()).limit(limit)
    return [(row.executor_param, row.log_id) for row in session.execute(grouped)]


def find_newest_id(session: Session, job_id: int) -> int:
    """Return the id of the newest run of a job; 0 if it never ran."""
    newest = (
        select(JobLog.id)
        .where(JobLog.job_id == job_id)
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
        .limit(1)
    )
    return session.scalar(newest) or 0


def find_manual_id(session: Session, job_id: int, *, after_id: int) -> int:
    """Return the id of a job's first manual run after ``after_id``; 0 if there is none."""
    later = select(func.min(JobLog.id)).where(
        JobLog.id > after_id, JobLog.job_id == job_id, JobLog.trigger_type == TriggerType.MANUAL
    )
    return session.scalar(later) or 0


def find_successors(
    session: Session, log_id: int, *, group_ids: Collection[int] | None, limit: int
) -> list[JobLog]:
    """Return the children and retries of a run in these groups (None: in any), by id, without messages."""
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
    """Return a page of the runs of these groups (None: all); counting stops at ``count_to`` (None: never)."""
    ids = fetch_page(session, _ordered_ids(wanted, group_ids), start=start, length=length, count_to=count_to)
    rows: list[JobLog] = []
    for first in range(0, len(ids.rows), ROWS_AT_ONCE):  # scripts request long pages
        rows += logs.find_logs(session, ids.rows[first : first + ROWS_AT_ONCE])
    capped = ids.capped or not _searches_all(session, wanted, group_ids)
    return Page(_in_order(ids.rows, rows), ids.total, capped)


def list_ids(
    session: Session, wanted: LogFilter, *, group_ids: Collection[int] | None, limit: int
) -> list[int]:
    """Return the ids of the first runs of the same list, in the same order."""
    return list(session.scalars(_ordered_ids(wanted, group_ids).limit(limit)))


def find_listed(
    session: Session, log_ids: Collection[int], *, group_ids: Collection[int] | None
) -> list[JobLog]:
    """Return those of the runs that exist, in the order of ``log_ids``, without their dispatch traces."""
    query = select(JobLog).options(defer(JobLog.trigger_msg)).where(JobLog.id.in_(log_ids))
    if group_ids is not None:
        query = query.where(JobLog.job_group.in_(list(group_ids)))
    return _in_order(log_ids, session.scalars(query))


def page_count_max(wanted: LogFilter, group_ids: Collection[int] | None) -> int:
    """Return where a page stops counting its runs: earlier if that reads rows and not only an index."""
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
    """Return the same clearing as bounds that later rows do not change.

    Rows above ``up_to_id`` (None: the newest id of now) stay and do not count among the newest.
    """
    newest_id = session.scalar(select(func.max(JobLog.id))) or 0
    up_to_id = newest_id if clearing.up_to_id is None else min(clearing.up_to_id, newest_id)
    clearing = replace(clearing, up_to_id=up_to_id)
    if not clearing.keep:
        return clearing
    scope = [*_scope(clearing.group_id, clearing.job_id), JobLog.id <= up_to_id]
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
    """Return the rows in the order of the ids; missing rows are left out."""
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
    """Return the query of a list, for ids only: an index may contain them, so an offset reads no rows.

    Failures of one kind are searched for among the KIND_MAX newest (or oldest) failures that match.
    """
    found = _matching_ids(wanted, group_ids)
    if wanted.status not in _KINDS:
        return found
    searched = found.limit(KIND_MAX).subquery()
    kind = select(JobLog.id).join(searched, searched.c.id == JobLog.id).where(*_KINDS[wanted.status])
    return kind.order_by(*_order(wanted, JobLog.trigger_time))


def _searches_all(session: Session, wanted: LogFilter, group_ids: Collection[int] | None) -> bool:
    """Whether no failure of one kind can be beyond those that are searched."""
    if wanted.status not in _KINDS:
        return True
    return session.scalar(_matching_ids(wanted, group_ids).offset(KIND_MAX).limit(1)) is None


def _matching_ids(wanted: LogFilter, group_ids: Collection[int] | None) -> Select[tuple[int]]:
    group, job, time = _filter_columns(wanted.status)
    conditions = _has_status(wanted.status)
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
    return select(JobLog.id).where(*conditions).order_by(*_order(wanted, time))


def _order(wanted: LogFilter, time: Expression) -> list[Expression]:
    columns: list[Expression] = [time, JobLog.id]
    return columns if wanted.order == OLDEST_FIRST else [column.desc() for column in columns]


def _filter_columns(status: int) -> tuple[Expression, Expression, Expression]:
    """Return the columns group, job and time to filter by.

    Running and waiting runs are few: all of them are read through the index on their result.
    """
    if status not in _OPEN:
        return JobLog.job_group, JobLog.job_id, JobLog.trigger_time
    return (
        unindexed_on_sqlite(JobLog.job_group),
        unindexed_on_sqlite(JobLog.job_id),
        unindexed_on_sqlite(JobLog.trigger_time),
    )


_OPEN: dict[int, TriggerCode] = {LogStatus.RUNNING: TriggerCode.ACCEPTED, LogStatus.WAITING: TriggerCode.NONE}
#: searched among few rows: not through the index on the result
_RESULT = unindexed_on_mysql(JobLog.handle_code)
_HANDLER_FAILED = _RESULT.not_in((HandleCode.NONE, HandleCode.SUCCESS, HandleCode.TIMEOUT))
#: kind of failure -> its condition, as app.domain.run_outcome has it
_KINDS: dict[int, tuple[ColumnElement[bool], ...]] = {
    LogStatus.ONLY_FAILED: (_HANDLER_FAILED, JobLog.killed == 0),
    LogStatus.TIMED_OUT: (_RESULT == HandleCode.TIMEOUT,),
    LogStatus.KILLED: (_HANDLER_FAILED, JobLog.killed != 0),
    LogStatus.NOT_STARTED: (
        _RESULT == HandleCode.NONE,
        JobLog.trigger_code != TriggerCode.UNRESOLVED,
    ),
    LogStatus.UNRESOLVED: (
        _RESULT == HandleCode.NONE,
        JobLog.trigger_code == TriggerCode.UNRESOLVED,
    ),
}


def _has_status(status: int) -> list[ColumnElement[bool]]:
    """Return the condition for a status, and for a kind of failure that of all failures.

    Source: docs/reference/scheduling.md, section 6.2, the console's own classification.
    """
    if status == LogStatus.SUCCESS:
        return [unindexed_on_mysql(JobLog.handle_code) == HandleCode.SUCCESS]
    if status == LogStatus.FAILED or status in _KINDS:
        return [logs.is_failed()]
    if status in _OPEN:
        return [JobLog.trigger_code == _OPEN[status], JobLog.handle_code == HandleCode.NONE]
    return []
