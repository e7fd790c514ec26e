"""List of a user's logins: shown to and ended by the user or an administrator."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, require_admin
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.session import LoginSession
from app.services.accounts import login
from app.services.auditing import audit
from app.store.accounts import sessions
from app.store.accounts.sessions import LiveLogins
from app.store.base.paging import Page

#: most logins of one user that are listed: scripts that log in for every call leave many
LISTED_MAX = 50


def list_logins(session: Session, user_id: int, *, actor: Actor, now_ms: Millis) -> Page[LoginSession]:
    """Return the live logins of a user, last seen first. Those of others for administrators only."""
    _require_own(user_id, actor)
    return sessions.live_of_user(session, _live_logins(user_id, now_ms), length=LISTED_MAX)


def get_login(
    session: Session, user_id: int, session_id: int, *, actor: Actor, now_ms: Millis
) -> LoginSession:
    """Return a live login of a user. Those of others for administrators only."""
    _require_own(user_id, actor)
    row = sessions.find_live(session, _live_logins(user_id, now_ms), session_id)
    if row is None:
        raise NotFound(N_("This login has ended already"))
    return row


def end_login(session: Session, user_id: int, session_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """End one login of a user."""
    row = get_login(session, user_id, session_id, actor=actor, now_ms=now_ms)
    changes = {"address": row.address, "agent": row.agent, "since_ms": row.created_ms}
    if not sessions.delete_one(session, session_id, user_id=user_id):
        raise NotFound(N_("This login has ended already"))
    audit.record(session, "login.end", actor=actor, now_ms=now_ms, target=("user", user_id), changes=changes)


def end_logins(session: Session, user_id: int, *, keep_id: int, actor: Actor, now_ms: Millis) -> int:
    """End the logins of a user except ``keep_id`` (0: none); return how many were live."""
    _require_own(user_id, actor)
    count = sessions.count_live(session, _live_logins(user_id, now_ms), but_id=keep_id)
    sessions.delete_of_user(session, user_id, but_id=keep_id)
    audit.record(
        session, "login.end", actor=actor, now_ms=now_ms, target=("user", user_id), changes={"logins": count}
    )
    return count


def _require_own(user_id: int, actor: Actor) -> None:
    if user_id != actor.user_id:
        require_admin(actor)


def _live_logins(user_id: int, now_ms: Millis) -> LiveLogins:
    return LiveLogins(
        user_id,
        now_ms,
        seen_from_ms=now_ms - login.IDLE_MS,
        remembered_from_ms=now_ms - login.REMEMBERED_IDLE_MS,
    )
