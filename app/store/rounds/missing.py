"""Runs because of which a round is not complete."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog


class MissingRun(NamedTuple):
    """A run that has failed, and its job as it is now."""

    id: int
    job_id: int
    group_id: int


_RUNS = (
    select(JobLog.id, JobLog.job_id, Job.job_group)
    .join(Job, Job.id == JobLog.job_id)
    .where(among(JobLog.id))
    .order_by(JobLog.id)
)
_REPEATED = select(Fire.repeats_log_id).where(among(Fire.job_id), Fire.repeats_log_id.is_not(None))


def find_missing(session: Session, log_ids: Collection[int]) -> list[MissingRun]:
    """Return those of the runs that still exist, ids ascending."""
    rows = bulk.read_among(session, _RUNS, sorted(log_ids)) if log_ids else ()
    return [MissingRun._make(row) for row in rows]


def find_repeated(session: Session, job_ids: Collection[int]) -> set[int]:
    """Return the runs of these jobs that are being run again."""
    rows = bulk.read_among(session, _REPEATED, sorted(job_ids)) if job_ids else ()
    return {row[0] for row in rows}
