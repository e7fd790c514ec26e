"""Statements of the console on runs; those of the pipeline are in ``fires.logs``."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.orm import Session, defer, undefer_group

from app.clock import DAY_MS, Millis
from app.database.sql.in_list import among
from app.database.sql.planner_hints import unindexed_but_on_mysql, unindexed_on_mysql, unindexed_on_sqlite
from app.domain.enums import HandleCode, TriggerCode, TriggerType
from app.domain.lists.orders import UNSORTED, Order
from app.domain.runs.logical_times import AHEAD_DAYS
from app.models.base import lower_bound, upper_bound
from app.models.log import REPORTS, JobLog
from app.store.base.ordering import Expression
from app.store.base.paging import Page, fetch_page
from app.store.fires import logs

#: counting stops here: an exact count of a long log costs more than the page itself
COUNT_MAX = 10_000
#: limit where counting reads rows, as only failures have an index with group or job and result
COUNT_READ_MAX = 1_000
#: ids in one statement
ROWS_AT_ONCE = 1_000
#: the only other order that is fast on a log of any length
OLDEST_FIRST = Order("time")
#: newest failures that are searched for those of one kind, and newest runs for those of some logical times
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
    """Filter of the run list; 0 and None mean all. If a job is given, the group is ignored.

    From and to may include runs of up to an hour more where local time occurs twice: none is left out.
    """

    group_id: int = 0
    job_id: int = 0
    status: int = LogStatus.ALL
    from_ms: Millis | None = None
    to_ms: Millis | None = None
    #: time of a run, as its row returns it; only runs of later seconds of local time
    later_than_ms: Millis | None = None
    #: any order but OLDEST_FIRST means newest first
    order: Order = UNSORTED
    #: time and id of the run before the first of a page, newest first; None: from the newest on
    after: tuple[Millis, int] | None = None
    #: first and last logical time
    logical_from_ms: Millis | None = None
    logical_to_ms: Millis | None = None
    #: only these runs
    among_ids: Collection[int] | None = None

    @property
    def is_searched(self) -> bool:
        """Whether no index leads to its runs, so that those that match the rest are searched for them."""
        return self.status in _KINDS or self.logical_from_ms is not None or self.logical_to_ms is not None


def find_log(session: Session, log_id: int) -> JobLog | None:
    """Return a log row or None."""
    return session.get(JobLog, log_id, options=[undefer_group(REPORTS)])


def find_used_params(session: Session, job_id: int, *, group_id: int, limit: int) -> list[tuple[str, int]]:
    """Return the parameters of a job's manual runs in its group, each with its newest run, newest first.

    Searches the newest RECENT_RUNS_MAX runs.
    """
    newest = select(JobLog.id, JobLog.executor_param, JobLog.trigger_type).where(
        JobLog.job_id == job_id, unindexed_on_sqlite(JobLog.job_group) == group_id
    )
    recent = newest.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(RECENT_RUNS_MAX).subquery()
    manual_runs = select(recent.c.executor_param, func.max(recent.c.id).label("log_id"))
    manual_runs = manual_runs.where(
        recent.c.trigger_type == TriggerType.MANUAL, recent.c.executor_param != ""
    )
    query = manual_runs.group_by(recent.c.executor_param).order_by(func.max(recent.c.id).desc()).limit(limit)
    return [(row.executor_param, row.log_id) for row in session.execute(query)]


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
    criteria: LogFilter,
    *,
    group_ids: Collection[int] | None,
    start: int,
    length: int,
    count_to: int | None = COUNT_MAX,
    with_messages: bool = True,
) -> Page[JobLog]:
    """Return a page of the runs of these groups (None: all); counting stops at ``count_to`` (None: never)."""
    query = select(JobLog)
    if not with_messages:
        query = query.options(defer(JobLog.trigger_msg), defer(JobLog.handle_msg))
    if criteria.is_searched:
        ids = _page_of_kind(session, criteria, group_ids, start=start, length=length)
    else:
        id_query = _ordered_ids(criteria, group_ids)
        ids = fetch_page(session, id_query, start=start, length=length, count_to=count_to)
    rows: list[JobLog] = []
    for first in range(0, len(ids.rows), ROWS_AT_ONCE):  # Scripts request long pages.
        rows += session.scalars(query.where(JobLog.id.in_(ids.rows[first : first + ROWS_AT_ONCE])))
    return Page(_in_order(ids.rows, rows), ids.total, ids.is_capped)


def _page_of_kind(
    session: Session, criteria: LogFilter, group_ids: Collection[int] | None, *, start: int, length: int
) -> Page[int]:
    """Return a page of runs that are searched for; read once, because counting them reads as many rows."""
    ids = list(session.scalars(_ordered_ids(criteria, group_ids)))
    start, length = max(start, 0), max(length, 0)
    # There may be more of them beyond the runs that are searched.
    is_capped = session.scalar(_matching_ids(criteria, group_ids).offset(KIND_MAX).limit(1)) is not None
    return Page(ids[start : start + length], len(ids), is_capped)


def list_ids(
    session: Session, criteria: LogFilter, *, group_ids: Collection[int] | None, limit: int
) -> list[int]:
    """Return the ids of the first runs of the same list, in the same order."""
    return list(session.scalars(_ordered_ids(criteria, group_ids).limit(limit)))


def list_from(
    session: Session, criteria: LogFilter, *, group_ids: Collection[int] | None, limit: int
) -> tuple[list[JobLog], tuple[Millis, int] | None]:
    """Return the next runs of the list, without messages, and where the page after them begins (None: ended).

    A page of failures of one kind, or of logical times, may be short or empty and still have one after it,
    because each searches KIND_MAX runs.
    """
    ids = list_ids(session, criteria, group_ids=group_ids, limit=limit + 1)
    query = select(JobLog).options(defer(JobLog.trigger_msg), defer(JobLog.handle_msg))
    page_logs = _in_order(ids, session.scalars(query.where(JobLog.id.in_(ids)))) if ids else []
    last = page_logs[limit - 1] if len(ids) > limit else None
    if last is None and criteria.is_searched:
        last_id = _matching_ids(criteria, group_ids).offset(KIND_MAX - 1).limit(1)
        last = session.scalar(query.where(JobLog.id == last_id.scalar_subquery()))
    after = (last.trigger_time or 0, last.id) if last is not None else None
    return page_logs[:limit], after


def count_later(
    session: Session, criteria: LogFilter, *, group_ids: Collection[int] | None, after_ms: Millis, limit: int
) -> int:
    """Return how many runs of the same list were triggered in later seconds; counting stops at ``limit``."""
    later = replace(criteria, from_ms=None, to_ms=None, later_than_ms=after_ms)
    matches = _ordered_ids(later, group_ids).limit(limit).subquery()
    return session.scalar(select(func.count()).select_from(matches)) or 0


def find_without_messages(session: Session, log_ids: Collection[int]) -> list[JobLog]:
    """Return those of the runs that exist, without messages, which may be long."""
    query = select(JobLog).options(defer(JobLog.trigger_msg), defer(JobLog.handle_msg))
    return list(session.scalars(query.where(JobLog.id.in_(log_ids)))) if log_ids else []


def find_listed(
    session: Session, log_ids: Collection[int], *, group_ids: Collection[int] | None
) -> list[JobLog]:
    """Return those of the runs that exist, in the order of ``log_ids``, without their dispatch traces."""
    query = select(JobLog).options(defer(JobLog.trigger_msg)).where(JobLog.id.in_(log_ids))
    if group_ids is not None:
        query = query.where(JobLog.job_group.in_(list(group_ids)))
    return _in_order(log_ids, session.scalars(query))


def page_count_max(criteria: LogFilter, group_ids: Collection[int] | None) -> int:
    """Return where a page stops counting its runs: earlier if that reads rows and not only an index."""
    reads_rows = criteria.status != LogStatus.ALL and (
        group_ids is not None or criteria.group_id > 0 or criteria.job_id > 0
    )
    return COUNT_READ_MAX if reads_rows else COUNT_MAX


def _in_order(log_ids: Collection[int], rows: Iterable[JobLog]) -> list[JobLog]:
    """Return the rows in the order of the ids; missing rows are left out."""
    log_by_id = {log.id: log for log in rows}
    return [log_by_id[log_id] for log_id in log_ids if log_id in log_by_id]


def _ordered_ids(criteria: LogFilter, group_ids: Collection[int] | None) -> Select[tuple[int]]:
    """Return the query of a list, for ids only: an index may contain them, so an offset reads no rows.

    Failures of one kind are searched for among the KIND_MAX newest (or oldest) failures that match, runs of
    some logical times among as many runs.
    """
    query = _matching_ids(criteria, group_ids)
    if not criteria.is_searched:
        return query
    recent = query.limit(KIND_MAX).subquery()
    conditions = [*_KINDS.get(criteria.status, ()), *_has_logical_time(criteria)]
    kind = select(JobLog.id).join(recent, recent.c.id == JobLog.id).where(*conditions)
    return kind.order_by(*_order(criteria, JobLog.trigger_time))


def conditions_of(criteria: LogFilter, group_ids: Collection[int] | None) -> list[ColumnElement[bool]]:
    """Return the conditions of a filter, for a list in another order; logical times are no part of it."""
    return [*_conditions(criteria, group_ids), *_KINDS.get(criteria.status, ())]


def _matching_ids(criteria: LogFilter, group_ids: Collection[int] | None) -> Select[tuple[int]]:
    time = _filter_columns(criteria.status)[2]
    return select(JobLog.id).where(*_conditions(criteria, group_ids)).order_by(*_order(criteria, time))


def _conditions(criteria: LogFilter, group_ids: Collection[int] | None) -> list[ColumnElement[bool]]:
    group, job, time = _filter_columns(criteria.status)
    conditions = _has_status(criteria.status)
    if criteria.job_id > 0:
        conditions.append(job == criteria.job_id)
    elif criteria.group_id > 0:
        conditions.append(group == criteria.group_id)
    if group_ids is not None:
        conditions.append(group.in_(list(group_ids)))
    from_ms = _first_trigger(criteria)
    if from_ms is not None:
        conditions.append(time >= lower_bound(from_ms))
    if criteria.to_ms is not None:
        conditions.append(time <= upper_bound(criteria.to_ms))
    if criteria.later_than_ms is not None:
        conditions.append(time > criteria.later_than_ms)
    if criteria.among_ids is not None:
        conditions.append(among(JobLog.id, sorted(criteria.among_ids)))
    if criteria.after is not None:
        after_ms, after_id = criteria.after
        conditions += [time <= after_ms, or_(time < after_ms, JobLog.id < after_id)]
    return conditions


def _first_trigger(criteria: LogFilter) -> Millis | None:
    """Return when the first run that can match was triggered: no logical time is further ahead than so."""
    if criteria.logical_from_ms is None:
        return criteria.from_ms
    return max(criteria.from_ms or 0, criteria.logical_from_ms - AHEAD_DAYS * DAY_MS)


def _has_logical_time(criteria: LogFilter) -> list[ColumnElement[bool]]:
    """Return the condition for logical times, by the rule of ``logical_of``."""
    conditions = []
    if (first_ms := criteria.logical_from_ms) is not None:
        logical_ms = func.coalesce(JobLog.logical_ms, JobLog.fire_time)
        has_own_time = and_(logical_ms.is_(None), JobLog.trigger_time >= lower_bound(first_ms))
        conditions.append(or_(logical_ms >= first_ms, has_own_time))
    if (last_ms := criteria.logical_to_ms) is not None:
        logical_ms = func.coalesce(JobLog.logical_ms, JobLog.fire_time)
        has_own_time = and_(logical_ms.is_(None), JobLog.trigger_time <= upper_bound(last_ms))
        conditions.append(or_(logical_ms <= last_ms, has_own_time))
    return conditions


def _order(criteria: LogFilter, time: Expression) -> list[Expression]:
    columns: list[Expression] = [time, JobLog.id]
    return columns if criteria.order == OLDEST_FIRST else [column.desc() for column in columns]


def _filter_columns(status: int) -> tuple[Expression, Expression, Expression]:
    """Return the columns group, job and time to filter by.

    Running and waiting runs are few: all of them are read through the index on their result. That of failures
    has the group, too; SQLite 3.53 would read all runs of the group instead.
    """
    if _is_failure(status):
        return unindexed_on_sqlite(JobLog.job_group), JobLog.job_id, JobLog.trigger_time
    if status not in _OPEN:
        return JobLog.job_group, JobLog.job_id, JobLog.trigger_time
    return (
        unindexed_but_on_mysql(JobLog.job_group),
        unindexed_but_on_mysql(JobLog.job_id),
        unindexed_but_on_mysql(JobLog.trigger_time),
    )


_OPEN: dict[int, TriggerCode] = {LogStatus.RUNNING: TriggerCode.ACCEPTED, LogStatus.WAITING: TriggerCode.NONE}
#: Few rows are searched, not through the index on the result.
_RESULT = unindexed_on_mysql(JobLog.handle_code)
_HANDLER_FAILED = _RESULT.not_in((HandleCode.NONE, HandleCode.SUCCESS, HandleCode.TIMEOUT))
#: kind of failure -> its condition, as app.domain.runs.outcome has it
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


def _is_failure(status: int) -> bool:
    return status == LogStatus.FAILED or status in _KINDS


def _has_status(status: int) -> list[ColumnElement[bool]]:
    """Return the condition for a status, and for a kind of failure that of all failures.

    Source: docs/reference/scheduling.md, section 6.2, the console's own classification.
    """
    if status == LogStatus.SUCCESS:
        return [unindexed_on_mysql(JobLog.handle_code) == HandleCode.SUCCESS]
    if _is_failure(status):
        return [logs.is_failed()]
    if status in _OPEN:
        return [JobLog.trigger_code == _OPEN[status], JobLog.handle_code == HandleCode.NONE]
    return []
