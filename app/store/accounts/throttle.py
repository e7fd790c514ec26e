"""Statements on `xxl_job_throttle`: counters of failed attempts."""

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.models.throttle import Throttle


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


def delete_older(session: Session, before_ms: Millis) -> None:
    """Delete the counters whose last failure is older."""
    affected(session, delete(Throttle).where(Throttle.last_ms < before_ms))
