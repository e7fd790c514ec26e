"""Which jobs run after which, as the pipeline reads it."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.models.job import Job
from app.models.round import After


class FollowerRow(NamedTuple):
    """A job that runs after others."""

    id: int
    #: as JSON text
    runs_after: str | None
    #: empty: that of the installation
    time_zone: str
    schedule_type: str


_COLUMNS = tuple(getattr(Job, name) for name in FollowerRow._fields)
_FOLLOWERS = (
    select(After.predecessor_id, *_COLUMNS)
    .join(Job, Job.id == After.job_id)
    .where(among(After.predecessor_id))
)
_JOBS = select(*_COLUMNS).where(among(Job.id))


def find_followers(session: Session, predecessor_ids: Collection[int]) -> list[tuple[int, FollowerRow]]:
    """Return the jobs that run after these, each with the id of its predecessor."""
    if not predecessor_ids:
        return []
    rows = bulk.read_among(session, _FOLLOWERS, sorted(predecessor_ids))
    return [(row[0], FollowerRow._make(row[1:])) for row in rows]


def find_jobs(session: Session, job_ids: Collection[int]) -> dict[int, FollowerRow]:
    """Return those of the jobs that exist, by id."""
    rows = bulk.read_among(session, _JOBS, sorted(job_ids)) if job_ids else ()
    return {row[0]: FollowerRow._make(row) for row in rows}


_CHILDREN = select(Job.id, Job.child_jobid).where(among(Job.id))


def find_children(session: Session, job_ids: Collection[int]) -> dict[int, str]:
    """Return job id -> text of its child jobs, of those that have any."""
    rows = bulk.read_among(session, _CHILDREN, sorted(job_ids)) if job_ids else ()
    return {row[0]: row[1] for row in rows if row[1]}
