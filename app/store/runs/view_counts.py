"""Numbers of runs of the built-in views of the run list, each bounded however long the log is. Reads only."""

from typing import NamedTuple

from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.planner_hints import unindexed_on_sqlite
from app.domain.enums import FireState, HandleCode, TriggerCode
from app.models.base import lower_bound, upper_bound
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.store.fires.logs import is_failed
from app.store.pickers.overview import GroupIds


class ViewCounts(NamedTuple):
    """Numbers of runs of the views, each at most the limit."""

    failed: int
    #: those of the newest failures that were not started
    not_started: int
    running: int


def count_views(
    session: Session, group_ids: GroupIds, *, from_ms: Millis, to_ms: Millis, limit: int
) -> ViewCounts:
    """Count runs of these groups (None: of all): failures that were triggered in a time, and running ones.

    In one statement. Running ones are counted as fires, which are few: no index has the runs without a
    result. Those that a Java admin sent are not among them.
    """
    recent = _newest_failures(group_ids, from_ms, to_ms).limit(limit).subquery()
    not_started = and_(JobLog.handle_code == HandleCode.NONE, JobLog.trigger_code != TriggerCode.UNRESOLVED)
    running = select(func.count()).select_from(_accepted_ids(group_ids).limit(limit).subquery())
    counts = select(func.count(), func.count(case((not_started, 1))), running.scalar_subquery())
    query = counts.select_from(recent).join(JobLog, JobLog.id == recent.c.id)
    return ViewCounts._make(bulk.read_rows(session, query)[0])


def _newest_failures(group_ids: GroupIds, from_ms: Millis, to_ms: Millis) -> Select[tuple[int]]:
    conditions = [
        is_failed(),
        JobLog.trigger_time >= lower_bound(from_ms),
        JobLog.trigger_time <= upper_bound(to_ms),
    ]
    if group_ids is not None:
        conditions.append(unindexed_on_sqlite(JobLog.job_group).in_(list(group_ids)))
    return select(JobLog.id).where(*conditions).order_by(JobLog.trigger_time.desc(), JobLog.id.desc())


def _accepted_ids(group_ids: GroupIds) -> Select[tuple[int]]:
    query = select(Fire.id).where(Fire.state == FireState.ACCEPTED)
    if group_ids is None:
        return query
    return query.join(Job, Job.id == Fire.job_id).where(Job.job_group.in_(list(group_ids)))
