"""Statements on `xxl_job_throttle`: counters of failed attempts."""

from sqlalchemy import and_, delete, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.models.throttle import Throttle

#: beginning of the subjects of sources that an account knows, which are kept longer
KNOWN = "known:"


def lock_counter(session: Session, subject: str, *, now_ms: Millis) -> Throttle:
    """Lock and return the counter of a subject; insert it if there is none.

    Concurrent callers can deadlock on MySQL: call it in ``transact``.
    """
    counter = session.get(Throttle, subject, with_for_update=True, populate_existing=True)
    if counter is None:
        row = {
            "subject": subject,
            "failures": 0,
            "first_ms": now_ms,
            "last_ms": now_ms,
            "blocked_until_ms": 0,
        }
        bulk.insert_ignore(session, Throttle, [row])
        counter = session.get_one(Throttle, subject, with_for_update=True, populate_existing=True)
    return counter


def find_counter(session: Session, subject: str) -> Throttle | None:
    """Return the counter of a subject or None."""
    return session.get(Throttle, subject)


def delete_counter(session: Session, subject: str) -> None:
    """Delete the counter of a subject."""
    affected(session, delete(Throttle).where(Throttle.subject == subject))


def delete_below(session: Session, beginning: str) -> None:
    """Delete the counters of the subjects that begin so."""
    affected(session, delete(Throttle).where(Throttle.subject.startswith(beginning, autoescape=True)))


def delete_old(session: Session, *, before_ms: Millis, known_before_ms: Millis, limit: int) -> int:
    """Delete counters whose last attempt is older, those of known sources later; return how many."""
    is_other = ~Throttle.subject.startswith(KNOWN)
    is_old = or_(Throttle.last_ms < known_before_ms, and_(is_other, Throttle.last_ms < before_ms))
    subjects = list(session.scalars(select(Throttle.subject).where(is_old).limit(limit)))
    return (
        affected(session, delete(Throttle).where(Throttle.subject.in_(subjects), is_old)) if subjects else 0
    )
