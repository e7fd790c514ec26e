"""Clearing of the log: selection, count and batched deletion of rows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, and_, delete, func, not_, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.models.alarm import Alarm
from app.models.base import lower_bound
from app.models.log import JobLog
from app.store.alarms import clearing as alarm_clearing
from app.store.completeness.removal import keep_terms
from app.store.fires import logs, prepared_fires
from app.store.fires import queue as fires
from app.store.runs.archived_logs import mark_deleted

DELETE_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Clearing:
    """Which rows to clear: of a group and a job (0: any), up to an instant or all but the newest ``keep``."""

    group_id: int
    job_id: int
    before_ms: Millis | None = None
    keep: int | None = None
    #: the oldest row to keep, of the second ``before_ms``: of that second only rows with smaller ids are
    #: cleared; 0: none
    kept_id: int | None = None
    #: rows with higher ids are kept
    up_to_id: int | None = None


def clear_batch(session: Session, clearing: Clearing) -> tuple[int, bool]:
    """Delete up to DELETE_BATCH rows with their fires and alarms.

    Return how many, without those that another transaction has deleted, and whether no more are left. Log
    rows of prepared fires stay.
    """
    scope = _to_clear(clearing if clearing.keep is None else fix_bounds(session, clearing))
    ids = list(
        session.scalars(
            select(JobLog.id)
            .where(*scope, not_(prepared_fires.is_ahead()))
            .order_by(JobLog.id)
            .limit(DELETE_BATCH)
        )
    )
    count = delete_runs(session, ids, is_clearing=True) if ids else 0
    return count, len(ids) < DELETE_BATCH


def fix_bounds(session: Session, clearing: Clearing) -> Clearing:
    """Return the same clearing as bounds that later rows do not change.

    Rows above ``up_to_id`` (None: the newest id of now) stay and do not count among the newest. Of an hour
    that local time has twice all rows stay if the oldest to keep is one of them.
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
    oldest = session.execute(newest.offset(clearing.keep - 1).limit(1)).first()
    if oldest is None:
        return replace(clearing, keep=None, up_to_id=0)
    first_ms = lower_bound(oldest.trigger_time)
    if first_ms != oldest.trigger_time:
        # The local time occurs twice and does not show which rows are the newest.
        return replace(clearing, keep=None, before_ms=first_ms, kept_id=0)
    return replace(clearing, keep=None, before_ms=oldest.trigger_time, kept_id=oldest.id)


def count_to_clear(session: Session, clearing: Clearing) -> int:
    """Return how many rows a fixed clearing would delete."""
    return session.scalar(select(func.count()).select_from(JobLog).where(*_to_clear(clearing))) or 0


def has_more_runs(session: Session, job_ids: Collection[int], count: int) -> bool:
    """Whether these jobs together have more than ``count`` log rows, which are not all read."""
    beyond = select(JobLog.id).where(JobLog.job_id.in_(list(job_ids))).offset(count).limit(1)
    return session.scalar(beyond) is not None


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


def delete_runs(session: Session, log_ids: Sequence[int], *, is_clearing: bool = False) -> int:
    """Delete log rows with their alarms and fires; return how many rows.

    ``is_clearing``: rows of prepared fires stay, and alarms from which another message may follow. Locks them
    in the order of others: the notifier alarms before runs, results runs by id before fires.
    """
    _delete_alarms(session, log_ids, is_clearing=is_clearing)
    logs.lock_traced(session, log_ids)
    # Fires may have been prepared since the rows were selected; they have no alarms.
    ahead = prepared_fires.find_logs(session, log_ids) if is_clearing else set()
    rows_to_delete = [log_id for log_id in log_ids if log_id not in ahead]
    if not rows_to_delete:
        return 0
    keep_terms(session, rows_to_delete)
    count = affected(session, delete(JobLog).where(JobLog.id.in_(rows_to_delete)))
    _delete_alarms(session, log_ids, is_clearing=is_clearing)  # Runs may have ended meanwhile.
    fires.delete_of_logs(session, rows_to_delete)
    mark_deleted(session, rows_to_delete)
    return count


def _delete_alarms(session: Session, log_ids: Sequence[int], *, is_clearing: bool) -> None:
    if is_clearing:
        alarm_clearing.delete_of_runs(session, log_ids)
    else:
        affected(session, delete(Alarm).where(Alarm.log_id.in_(log_ids)))


def _scope(group_id: int, job_id: int) -> list[ColumnElement[bool]]:
    scope: list[ColumnElement[bool]] = []
    if group_id > 0:
        scope.append(JobLog.job_group == group_id)
    if job_id > 0:
        scope.append(JobLog.job_id == job_id)
    return scope
