"""States of jobs by their runs: which jobs are running, which never ran, and the numbers of the views.

Which jobs are failing is in ``app.store.runs.failing``.
"""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, exists, func, select, true
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import FireState, TriggerCode
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.store.base.paging import contains
from app.store.jobs import favourites
from app.store.pickers.overview import GroupIds, find_newest_ids, find_open_runs, in_groups

#: states of the fires whose runs are at an executor
_OUT = (FireState.ROUTING, FireState.SENDING, FireState.ACCEPTED)


class ViewCounts(NamedTuple):
    """Numbers of jobs: all, and those of each built-in view but the failing ones."""

    all: int
    running: int
    mine: int
    favourites: int
    drifted: int


def find_running(session: Session, group_ids: GroupIds) -> frozenset[int]:
    """Return the jobs whose last run is in progress, or that have any other run at an executor."""
    job_by_run = {
        run.id: run.job_id
        for run in find_open_runs(session, group_ids)
        if run.trigger_code == TriggerCode.ACCEPTED
    }
    newest_ids = _find_newest(session, set(job_by_run.values()), group_ids)
    rows = bulk.read_rows(session, select(Fire.job_id).where(Fire.state.in_(_OUT)).distinct())
    return frozenset(
        {job_by_run[run_id] for run_id in newest_ids & job_by_run.keys()} | {row[0] for row in rows}
    )


def _find_newest(session: Session, job_ids: Collection[int], group_ids: GroupIds) -> set[int]:
    """Return the ids of the newest run in these groups of each of the jobs."""
    if not job_ids or group_ids is None:
        return find_newest_ids(session, job_ids) if job_ids else set()
    runs = select(JobLog.id).where(JobLog.job_id == Job.id, *in_groups(JobLog.job_group, group_ids))
    newest = runs.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(1)
    query = select(newest.correlate(Job).scalar_subquery()).where(Job.id.in_(list(job_ids)))
    return {row[0] for row in bulk.read_rows(session, query) if row[0]}


def never_ran(group_ids: GroupIds) -> ColumnElement[bool]:
    """Return the condition for jobs without a run in these groups."""
    return ~exists().where(JobLog.job_id == Job.id, *in_groups(JobLog.job_group, group_ids)).correlate(Job)


def count_views(
    session: Session,
    group_ids: GroupIds,
    *,
    username: str,
    user_id: int,
    running: Collection[int],
    drift_ids: Collection[int],
) -> ViewCounts:
    """Return the numbers of these groups' jobs, in one statement."""
    conditions = (
        true(),
        among(Job.id, list(running)),
        contains(Job.author, username),
        favourites.is_favourite_of(user_id),
        among(Job.id, list(drift_ids)),
    )
    visible = in_groups(Job.job_group, group_ids)
    # Each has its own index, but for the author's.
    counts = (select(func.count(Job.id)).where(condition, *visible) for condition in conditions)
    query = select(*(count.scalar_subquery() for count in counts))
    return ViewCounts._make(bulk.read_rows(session, query)[0])
