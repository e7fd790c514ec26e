"""Fires of planned runs: triggered for an instant to come, and withdrawn while no claim has taken them."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import FireState
from app.domain.trigger_keys import ONCE
from app.models.fire import Fire
from app.store import bulk, fires


def count_ahead(session: Session, job_id: int, *, now_ms: Millis) -> int:
    """Return how many runs are planned for a job."""
    return session.scalar(select(func.count()).select_from(Fire).where(*_ahead(job_id, now_ms))) or 0


def find_ahead(session: Session, job_id: int, *, now_ms: Millis, limit: int) -> list[tuple[str, Millis]]:
    """Return key and due time of the fires planned for a job, the next first."""
    query = select(Fire.fire_key, Fire.due_time).where(*_ahead(job_id, now_ms))
    return [(row[0], row[1]) for row in session.execute(query.order_by(Fire.due_time, Fire.id).limit(limit))]


def lock_unclaimed(session: Session, fire_ids: Collection[int]) -> list[int]:
    """Lock those of the fires that no claim has taken; return their ids."""
    unclaimed = (Fire.state == FireState.PENDING, Fire.log_id.is_(None))
    query = fires.by_id(select(Fire.id)).where(Fire.id.in_(sorted(fire_ids)), *unclaimed).order_by(Fire.id)
    return [row.id for row in bulk.read_rows(session, query.with_for_update())] if fire_ids else []


def _ahead(job_id: int, now_ms: Millis) -> tuple[ColumnElement[bool], ...]:
    return (
        Fire.job_id == job_id,
        Fire.state == FireState.PENDING,
        Fire.due_time > now_ms,
        Fire.fire_key.like(f"{ONCE}:%"),
    )
