"""Jobs as the completion of their runs reads them."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import case, exists, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.promises.promise import END_KINDS
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import JobPromise
from app.store.archive.modes import MODE


class JobOfResult(NamedTuple):
    """A job as the completion of a run reads it."""

    id: int
    job_desc: str
    child_jobid: str | None
    executor_fail_retry_count: int
    retry_interval_s: int
    retry_backoff_percent: int
    delivery: str
    schedule_type: str
    schedule_conf: str | None
    trigger_status: int
    trigger_next_time: Millis
    #: 1: other jobs run after it
    has_followers: int
    #: 1: it promises something that is judged when a run ends
    promises_ends: int = 0
    #: ArchiveMode of the job, else of its group; empty: as the installation says
    log_archive: str = ""


_OF_END = exists().where(JobPromise.job_id == Job.id, JobPromise.kind.in_(sorted(END_KINDS)))
_PROMISES_ENDS = case((_OF_END, 1), else_=0)
_COMPLETED_BY = tuple(getattr(Job, name) for name in JobOfResult._fields[:-2])
_OF_RESULTS = select(*_COMPLETED_BY, _PROMISES_ENDS, MODE).where(
    Job.id.in_(select(JobLog.job_id).where(among(JobLog.id)))
)


def find_of_results(session: Session, log_ids: Collection[int]) -> dict[int, JobOfResult]:
    """Return those of the jobs that exist as the completion of their runs reads them, by id."""
    rows = bulk.read_among(session, _OF_RESULTS, list(log_ids))
    return {row[0]: JobOfResult._make(row) for row in rows}


def find_deliveries(session: Session, job_ids: Collection[int]) -> dict[int, str]:
    """Return job id -> delivery policy of those of the jobs that exist."""
    rows = session.execute(select(Job.id, Job.delivery).where(Job.id.in_(job_ids)))
    return {row.id: row.delivery for row in rows}
