"""Failing jobs: the newest ended run of each job, where that is no success. Reads only.

Jobs are looked for among the newest failed runs, which one index has. Only where that leaves some out,
because a few jobs fail very often, does each job take a lookup in the index on its runs.
"""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, bindparam, case, or_, select
from sqlalchemy.orm import Session, aliased

from app.database.dialects.choice import dialect_of
from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.database.sql.planner_hints import unindexed_on_sqlite
from app.domain.enums import HandleCode
from app.models.job import Job
from app.models.log import JobLog
from app.store.fires.logs import is_failed
from app.store.pickers.overview import GroupIds, in_groups
from app.store.runs.recent import Run

#: newest failed runs that are searched before each job is looked up
SEARCHED_MAX = 2_000
#: jobs of one statement; fewer on PostgreSQL, which compiles one of very many for 0.1 s
JOBS_AT_ONCE, JOBS_BEFORE_COMPILING = 10_000, 250
_NEWEST_FAILED = (
    select(JobLog.job_id)
    .where(is_failed())
    .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    .limit(bindparam("most", type_=Integer))
)
_FAILED_RUNS = select(*(getattr(JobLog, name) for name in Run._fields)).where(
    # By their ids: SQLite would read the index of all failed runs.
    among(JobLog.id),
    unindexed_on_sqlite(JobLog.failed) == 1,
)


class LastFailures(NamedTuple):
    """Last failures of the failing jobs."""

    #: the newest first
    runs: list[Run]
    #: there are more failed runs than are searched, and each job was looked up: ten times as slow
    is_of_each_job: bool


def find_last_failures(
    session: Session, group_ids: GroupIds, *, known_ids: Collection[int] | None = None
) -> LastFailures:
    """Return the newest ended run of each failing job of these groups (None: of all).

    Runs that a job had in other groups do not count. ``known_ids``: the jobs that were failing shortly
    before; not each job is then looked up, but these and those of the newest failed runs.
    """
    visible = in_groups(Job.job_group, group_ids)
    newest = bulk.read_rows(session, _NEWEST_FAILED, {"most": SEARCHED_MAX})
    is_of_each_job = len(newest) == SEARCHED_MAX and known_ids is None
    if is_of_each_job:
        newest = bulk.read_rows(session, select(Job.id).where(*visible))
    job_ids = sorted({row[0] for row in newest}.union(known_ids or ()))
    sorts_all = dialect_of(session).reads_index_pages
    newest_ended = _newest_of_newest_second(group_ids) if sorts_all else _newest_ended(group_ids)
    last = select(newest_ended.correlate(Job).scalar_subquery()).where(among(Job.id), *visible)
    runs: list[Run] = []
    at_once = JOBS_BEFORE_COMPILING if sorts_all else JOBS_AT_ONCE
    for start in range(0, len(job_ids), at_once):
        rows = bulk.read_rows(session, last, {WANTED: job_ids[start : start + at_once]})
        ids = [row[0] for row in rows if row[0]]
        runs += map(Run._make, bulk.read_among(session, _FAILED_RUNS, ids))
    runs.sort(key=lambda run: (run.trigger_time, run.id), reverse=True)
    return LastFailures(runs, is_of_each_job)


def _newest_ended(group_ids: GroupIds) -> Select[tuple[int]]:
    runs = select(JobLog.id).where(JobLog.job_id == Job.id, *_has_ended(JobLog, group_ids))
    return runs.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(1)


def _newest_of_newest_second(group_ids: GroupIds) -> Select[tuple[int]]:
    """Return what ``_newest_ended`` does, for PostgreSQL, which would sort all runs of the job for it."""
    run = aliased(JobLog)
    times = select(run.trigger_time).where(run.job_id == Job.id, *_has_ended(run, group_ids))
    newest_ms = times.order_by(run.trigger_time.desc()).limit(1).correlate(Job).scalar_subquery()
    runs = _newest_ended(group_ids).where(JobLog.trigger_time == newest_ms)
    return runs.order_by(None).order_by(JobLog.id.desc())


def _has_ended(log: type[JobLog], group_ids: GroupIds) -> list[ColumnElement[bool]]:
    # An expression, which no planner looks for in an index: it shall read the runs of the job in their order.
    is_result = case((or_(log.failed == 1, log.handle_code == HandleCode.SUCCESS), 1), else_=0) == 1
    return [is_result, log.trigger_time.is_not(None), *in_groups(log.job_group, group_ids)]
