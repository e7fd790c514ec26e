"""Last runs of jobs: the sort order of the list of jobs by its column for them."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ScalarSelect, Select, select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.database.dialects.choice import dialect_of
from app.database.rows import bulk
from app.models.job import Job
from app.models.log import JobLog
from app.store.pickers.overview import in_groups

#: newest runs searched for the jobs that ran last: more only if the first are of too few jobs
NEWEST_RUNS = (200, 2_000)


def last_run(session: Session, group_ids: Collection[int] | None) -> list[ScalarSelect[Any]]:
    """Return when a job last ran; runs it had in groups other than these (None: all) do not count.

    ORDER BY with LIMIT 1 takes one index lookup per job; MAX would read all its runs on MariaDB. PostgreSQL
    looks at the last day first: for each lookup it reads all the runs of the job on a page of the index, a
    hundred, before it returns the newest.
    """
    runs = select(JobLog.trigger_time).where(JobLog.trigger_time.is_not(None))
    job_runs = runs.where(JobLog.job_id == Job.id, *in_groups(JobLog.job_group, group_ids))
    lookups = [job_runs]
    if dialect_of(session).reads_index_pages:
        newest_ms = session.scalar(runs.order_by(JobLog.trigger_time.desc()).limit(1)) or 0
        lookups.insert(0, job_runs.where(JobLog.trigger_time > newest_ms - DAY_MS))
    return [
        lookup.order_by(JobLog.trigger_time.desc()).limit(1).correlate(Job).scalar_subquery()
        for lookup in lookups
    ]


def ran_last(
    session: Session, jobs: Select[tuple[int]], group_ids: Collection[int] | None, count: int
) -> list[int]:
    """Return the first of these jobs in the order of their last runs in these groups, the last first.

    At least ``count`` if the newest runs are of so many: sorting all jobs takes an index lookup for each.
    """
    columns = (JobLog.job_id, JobLog.trigger_time, JobLog.job_group)
    newest = select(*columns).where(JobLog.trigger_time.is_not(None)).order_by(JobLog.trigger_time.desc())
    job_ids: list[int] = []
    for limit in NEWEST_RUNS:
        rows, last = bulk.read_rows(session, newest.limit(limit)), dict[int, Millis]()
        for job_id, triggered_ms, group_id in rows:
            # More runs of the earliest instant may exist.
            if triggered_ms > rows[-1][1] and (group_ids is None or group_id in group_ids):
                last.setdefault(job_id, triggered_ms)
        visible_ids = session.scalars(jobs.where(Job.id.in_(list(last))))
        job_ids = sorted(visible_ids, key=lambda job_id: (last[job_id], job_id), reverse=True)
        if len(job_ids) >= count:
            break
    return job_ids
