"""Statements on `xxl_job_logglue`: versions of GLUE sources."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, delete, exists, func, select
from sqlalchemy.orm import Session, defer

from app.database.engine import affected
from app.models.glue import GlueVersion
from app.models.job import Job


def list_versions(session: Session, job_id: int) -> list[GlueVersion]:
    """Return the versions of a job, newest first."""
    return list(
        session.scalars(
            select(GlueVersion).where(GlueVersion.job_id == job_id).order_by(GlueVersion.id.desc())
        )
    )


def list_remarks(
    session: Session, job_id: int, *, limit: int, before_id: int | None = None
) -> list[GlueVersion]:
    """Return the newest versions of a job, below ``before_id`` if given, without their long sources."""
    newest = select(GlueVersion).options(defer(GlueVersion.glue_source)).where(GlueVersion.job_id == job_id)
    if before_id is not None:
        newest = newest.where(GlueVersion.id < before_id)
    return list(session.scalars(newest.order_by(GlueVersion.id.desc()).limit(limit)))


def find_version(session: Session, version_id: int) -> GlueVersion | None:
    """Return a version or None."""
    return session.get(GlueVersion, version_id)


def find_unsaved(session: Session, job_ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return ``job_id`` and code of those of the jobs that have code, but no version."""
    statement = select(
        Job.id.label("job_id"), Job.glue_type, Job.glue_source, Job.glue_remark, Job.glue_updatetime
    ).where(Job.id.in_(list(job_ids)), Job.glue_source != "", ~exists().where(GlueVersion.job_id == Job.id))
    return session.execute(statement.order_by(Job.id)).all()


def find_with_more(session: Session, job_ids: Collection[int], *, versions: int) -> list[int]:
    """Return those of the jobs that have more than ``versions`` versions."""
    query = (
        select(GlueVersion.job_id).where(GlueVersion.job_id.in_(list(job_ids))).group_by(GlueVersion.job_id)
    )
    return list(session.scalars(query.having(func.count() > versions).order_by(GlueVersion.job_id)))


def delete_older(session: Session, job_id: int, *, keep: int) -> int:
    """Delete all but the newest ``keep`` versions of a job; return how many."""
    newest = select(GlueVersion.id).where(GlueVersion.job_id == job_id)
    newest_ids = list(
        session.scalars(newest.order_by(GlueVersion.update_time.desc(), GlueVersion.id.desc()).limit(keep))
    )
    if len(newest_ids) < keep:
        return 0
    return affected(
        session, delete(GlueVersion).where(GlueVersion.job_id == job_id, GlueVersion.id.not_in(newest_ids))
    )
