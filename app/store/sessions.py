"""Statements on `xxl_job_session`."""

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import affected
from app.models.session import LoginSession
from app.models.user import User


def find_with_user(session: Session, token_hashes: list[str]) -> list[tuple[LoginSession, User]]:
    """Return the logins of these tokens with their users."""
    query = select(LoginSession, User).join(User, User.id == LoginSession.user_id).where(LoginSession.token_hash.in_(token_hashes))
    return [(row[0], row[1]) for row in session.execute(query)]


def list_of_user(session: Session, user_id: int) -> list[LoginSession]:
    """Return the logins of a user, latest seen first."""
    query = select(LoginSession).where(LoginSession.user_id == user_id).order_by(LoginSession.seen_ms.desc(), LoginSession.id)
    return list(session.scalars(query))


def touch(session: Session, session_id: int, *, now_ms: Millis, seen_before_ms: Millis) -> bool:
    """Move ``seen_ms`` forward unless somebody just did."""
    statement = update(LoginSession).where(LoginSession.id == session_id, LoginSession.seen_ms < seen_before_ms)
    return affected(session, statement.values(seen_ms=now_ms)) == 1


def delete_by_hash(session: Session, token_hashes: list[str]) -> int:
    """End the logins of these tokens."""
    return affected(session, delete(LoginSession).where(LoginSession.token_hash.in_(token_hashes)))


def delete_of_user(session: Session, user_id: int) -> int:
    """End every login of a user."""
    return affected(session, delete(LoginSession).where(LoginSession.user_id == user_id))


def delete_expired(session: Session, now_ms: Millis) -> int:
    """Forget logins whose absolute end is over."""
    return affected(session, delete(LoginSession).where(LoginSession.expires_ms <= now_ms))
