"""`xxl_job_once`: names under which something was done."""

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import affected
from app.models.once import Once


def claim_name(session: Session, name: str, *, now_ms: Millis) -> bool:
    """Take a name; False where it is taken already. The caller holds a lock that all who ask for this name wait for."""
    if session.scalar(select(Once.id).where(Once.name == name)) is not None:
        return False
    session.execute(insert(Once).values(name=name, done_ms=now_ms))
    return True


def delete_before(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete names taken before an instant, the oldest first; return how many."""
    oldest = select(Once.id).where(Once.done_ms < before_ms).order_by(Once.id).limit(limit)
    ids = list(session.scalars(oldest))
    return affected(session, delete(Once).where(Once.id.in_(ids))) if ids else 0
