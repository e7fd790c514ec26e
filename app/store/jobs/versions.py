"""Statements on `xxl_job_version`, and the fields of jobs that versions have."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, and_, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk, deletion
from app.domain.jobs.members import PLAIN_MEMBERS
from app.domain.jobs.tags import FIELD as TAGS
from app.models.code import JobVersion
from app.models.job import Job

_FIELDS = tuple(getattr(Job, member.attribute) for member in PLAIN_MEMBERS if member.attribute != TAGS)


class Newest(NamedTuple):
    """Newest version of a job."""

    job_id: int
    number: int
    at_ms: Millis
    #: JSON
    fields: str


def read_jobs(session: Session, job_ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return id, update time and fields of the jobs that exist; their tags are elsewhere."""
    return bulk.read_rows(session, select(Job.id, Job.update_time, *_FIELDS).where(Job.id.in_(list(job_ids))))


def find_newest(session: Session, job_ids: Collection[int]) -> dict[int, Newest]:
    """Return the newest version of each of the jobs that has one, by job id; one statement."""
    if not job_ids:
        return {}
    newest = _newest(job_ids).subquery()
    query = select(JobVersion.job_id, JobVersion.number, JobVersion.at_ms, JobVersion.fields).join(
        newest, and_(JobVersion.job_id == newest.c.job_id, JobVersion.number == newest.c.number)
    )
    return {row[0]: Newest._make(row) for row in bulk.read_rows(session, query)}


def insert_versions(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert versions in one statement."""
    bulk.insert_many(session, JobVersion, rows)


def delete_older(session: Session, job_ids: Collection[int], *, keep: int) -> int:
    """Delete all but the newest ``keep`` versions of each of the jobs; return how many.

    Two statements for any number of jobs. Numbers have no gaps.
    """
    if not job_ids:
        return 0
    newest = _newest(job_ids).subquery()
    older = select(JobVersion.id).join(
        newest, and_(JobVersion.job_id == newest.c.job_id, JobVersion.number <= newest.c.number - keep)
    )
    return deletion.by_values(session, JobVersion, "id", [row[0] for row in bulk.read_rows(session, older)])


def list_newest(
    session: Session, job_id: int, *, limit: int, before: int | None = None
) -> Sequence[JobVersion]:
    """Return the newest versions of a job, those before number ``before`` if given, the newest first."""
    query = select(JobVersion).where(JobVersion.job_id == job_id)
    if before is not None:
        query = query.where(JobVersion.number < before)
    return session.scalars(query.order_by(JobVersion.number.desc()).limit(limit)).all()


def list_elsewhere(session: Session, job_id: int, group_id: int) -> list[tuple[int, str]]:
    """Return number and fields of the versions in which a job was in another group, the newest first.

    Usually none: so the many versions of a job that was never moved are not read.
    """
    is_in_group = JobVersion.fields.contains(f'"group_id": {group_id},', autoescape=True)
    query = select(JobVersion.number, JobVersion.fields).where(JobVersion.job_id == job_id, ~is_in_group)
    rows = bulk.read_rows(session, query.order_by(JobVersion.number.desc()))
    return [(row[0], row[1]) for row in rows]


def _newest(job_ids: Collection[int]) -> Select[tuple[int, int]]:
    return (
        select(JobVersion.job_id, func.max(JobVersion.number).label("number"))
        .where(JobVersion.job_id.in_(list(job_ids)))
        .group_by(JobVersion.job_id)
    )
