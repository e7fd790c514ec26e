"""Instants that were due and deliberately not fired."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models.skip import Skip


def list_skips(session: Session, job_id: int, *, limit: int = 20) -> list[Skip]:
    """Return the newest skips of a job."""
    newest = select(Skip).where(Skip.job_id == job_id).order_by(Skip.recorded_ms.desc(), Skip.id.desc()).limit(limit)
    return list(session.scalars(newest))
