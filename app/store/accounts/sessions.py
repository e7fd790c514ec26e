"""Statements on `xxl_job_session`: login sessions."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, delete, func, inspect, not_, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.models.session import LoginSession
from app.models.user import User
from app.store.base.paging import Page, fetch_page

#: rows deleted by one statement
DELETE_BATCH = 1_000
_LOGIN, _USER = inspect(LoginSession).column_attrs, inspect(User).column_attrs
#: made once: every request of a page begins with it
_WITH_USER = (
    select(*(attribute.columns[0] for attribute in (*_LOGIN, *_USER)))
    .join(User, User.id == LoginSession.user_id)
    .where(among(LoginSession.token_hash))
)


@dataclass(frozen=True, slots=True)
class LiveLogins:
    """Condition for the valid logins of a user: not expired and not idle for too long."""

    user_id: int
    now_ms: Millis
    #: last seen before this: idle for too long
    seen_from_ms: Millis
    #: the same for logins with "remember me"
    remembered_from_ms: Millis


def find_with_user(session: Session, token_hashes: list[str]) -> list[tuple[LoginSession, User]]:
    """Return the logins of these tokens with their users; none belongs to the session."""
    return [
        (
            LoginSession(**dict(zip(_LOGIN.keys(), row, strict=False))),
            User(**dict(zip(_USER.keys(), row[len(_LOGIN) :], strict=True))),
        )
        for row in direct.read(session, _WITH_USER, {WANTED: token_hashes})
    ]


def live_of_user(session: Session, query: LiveLogins, *, length: int) -> Page[LoginSession]:
    """Return the valid logins of a user, last seen first, and how many there are."""
    logins = _live(query).order_by(LoginSession.last_seen_ms.desc(), LoginSession.id.desc())
    return fetch_page(session, logins, start=0, length=length)


def find_live(session: Session, query: LiveLogins, session_id: int) -> LoginSession | None:
    """Return a valid login of a user, or None."""
    return session.scalar(_live(query).where(LoginSession.id == session_id))


def count_live(session: Session, query: LiveLogins, *, but_id: int = 0) -> int:
    """Return the number of valid logins, not counting ``but_id``."""
    return (
        session.scalar(
            select(func.count()).select_from(_live(query).where(LoginSession.id != but_id).subquery())
        )
        or 0
    )


def touch(session: Session, session_id: int, *, now_ms: Millis, seen_before_ms: Millis) -> bool:
    """Set ``last_seen_ms`` to now unless it is ``seen_before_ms`` or later; return whether it was set."""
    statement = update(LoginSession).where(
        LoginSession.id == session_id, LoginSession.last_seen_ms < seen_before_ms
    )
    return affected(session, statement.values(last_seen_ms=now_ms)) == 1


def confirm(session: Session, session_id: int, *, now_ms: Millis) -> None:
    """Record when the password was entered again in a login."""
    session.execute(update(LoginSession).where(LoginSession.id == session_id).values(confirmed_ms=now_ms))


def replace_token(session: Session, session_id: int, token_hash: str) -> LoginSession | None:
    """Give a login another token and return it; None if it has ended."""
    statement = update(LoginSession).where(LoginSession.id == session_id).values(token_hash=token_hash)
    return session.get(LoginSession, session_id) if affected(session, statement) else None


def delete_by_hash(session: Session, token_hashes: list[str]) -> int:
    """Delete the logins of these tokens; return how many there were."""
    return affected(session, delete(LoginSession).where(LoginSession.token_hash.in_(token_hashes)))


def delete_one(session: Session, session_id: int, *, user_id: int) -> bool:
    """Delete a login of a user; False if there is none."""
    return (
        affected(
            session,
            delete(LoginSession).where(LoginSession.id == session_id, LoginSession.user_id == user_id),
        )
        == 1
    )


def delete_of_user(session: Session, user_id: int, *, but_id: int = 0) -> int:
    """Delete all logins of a user except ``but_id``; return how many there were."""
    return affected(
        session, delete(LoginSession).where(LoginSession.user_id == user_id, LoginSession.id != but_id)
    )


def delete_dead(session: Session, *, now_ms: Millis, seen_from_ms: Millis, remembered_from_ms: Millis) -> int:
    """Delete up to DELETE_BATCH logins, of all users, that are expired or idle for too long.

    Return how many.
    """
    dead = select(LoginSession.id).where(not_(_is_valid(now_ms, seen_from_ms, remembered_from_ms)))
    ids = list(session.scalars(dead.order_by(LoginSession.id).limit(DELETE_BATCH)))
    return affected(session, delete(LoginSession).where(LoginSession.id.in_(ids))) if ids else 0


def _live(query: LiveLogins) -> "Select[tuple[LoginSession]]":
    is_valid = _is_valid(query.now_ms, query.seen_from_ms, query.remembered_from_ms)
    return select(LoginSession).where(LoginSession.user_id == query.user_id, is_valid)


def _is_valid(now_ms: Millis, seen_from_ms: Millis, remembered_from_ms: Millis) -> ColumnElement[bool]:
    is_in_use = or_(
        LoginSession.last_seen_ms >= seen_from_ms,
        and_(LoginSession.remember != 0, LoginSession.last_seen_ms >= remembered_from_ms),
    )
    return and_(LoginSession.expires_ms > now_ms, is_in_use)
