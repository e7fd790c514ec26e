"""Numbers of runs of the built-in views of the run list, each bounded however long the log is. Reads only."""

from typing import NamedTuple

from sqlalchemy import and_, case, func, select
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


class FailureCounts(NamedTuple):
    """Numbers among the newest failures of a time."""

    total: int
    #: those of them that were not started
    not_started: int


def count_failures(
    session: Session, group_ids: GroupIds, *, from_ms: Millis, to_ms: Millis, limit: int
) -> FailureCounts:
    """Count the newest ``limit`` failures of these groups (None: of all) that were triggered in a time."""
    conditions = [
        is_failed(),
        JobLog.trigger_time >= lower_bound(from_ms),
        JobLog.trigger_time <= upper_bound(to_ms),
    ]
    if group_ids is not None:
        conditions.append(unindexed_on_sqlite(JobLog.job_group).in_(list(group_ids)))
    newest = select(JobLog.id).where(*conditions).order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    recent = newest.limit(limit).subquery()
    not_started = and_(JobLog.handle_code == HandleCode.NONE, JobLog.trigger_code != TriggerCode.UNRESOLVED)
    counts = select(func.count(), func.count(case((not_started, 1))))
    query = counts.select_from(recent).join(JobLog, JobLog.id == recent.c.id)
    return FailureCounts._make(bulk.read_rows(session, query)[0])


def count_accepted(session: Session, group_ids: GroupIds, *, limit: int) -> int:
    """Return how many runs of jobs of these groups are at an executor, at most ``limit``.

    Reads the fires, which are few: those without a result have no index among the runs. Runs that a Java
    admin sends are not counted.
    """
    accepted = select(Fire.id).where(Fire.state == FireState.ACCEPTED)
    if group_ids is not None:
        accepted = accepted.join(Job, Job.id == Fire.job_id).where(Job.job_group.in_(list(group_ids)))
    query = select(func.count()).select_from(accepted.limit(limit).subquery())
    return int(bulk.read_rows(session, query)[0][0])
