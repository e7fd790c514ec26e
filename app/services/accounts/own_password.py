"""Change of the own password: with the old one, or without it right after the login if it is forced."""

import secrets
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope, session_scope
from app.domain.access import stored_passwords
from app.domain.access.passwords import check_new_password
from app.domain.access.permissions import Actor
from app.domain.enums import WeakPassword
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.user import User
from app.services.accounts import login, passwords
from app.services.accounts.login import Visitor
from app.services.accounts.password_list import common_passwords
from app.services.auditing import audit
from app.store.accounts import sessions, users

MISSING = N_("User id is invalid")
UNCHANGED = N_("The new password is the same as the old one")
#: how long after the login the old password is not required
FRESH_MS: Millis = 15 * MINUTE_MS


class NewCookie(NamedTuple):
    """New token of a login that goes on; ``max_age_s`` None: until the browser is closed."""

    token: str
    max_age_s: int | None


def needs_old_password(visitor: Visitor, *, now_ms: Millis) -> bool:
    """Whether the old password is required: not for a forced change by a login that has just used it."""
    is_forced = visitor.must_change or visitor.weak_password != WeakPassword.NO
    return not is_forced or visitor.sign_on or now_ms - visitor.created_ms > FRESH_MS


def change_in_login(
    old: str, new: str, *, visitor: Visitor, now_ms: Millis, second_entry: str | None = None
) -> NewCookie:
    """Change the user's password, give this login a new token and end the others.

    ``old`` is ignored if it is not required, ``second_entry`` is the new one as entered again. Opens its own
    transactions.
    """
    actor, with_old = visitor.actor, needs_old_password(visitor, now_ms=now_ms)
    _check_form(old if with_old else None, new, second_entry, username=actor.username)
    old_hash, new_hash = (
        _hash_both(old, new, actor=actor, now_ms=now_ms) if with_old else (None, _hash_new(new, actor=actor))
    )
    with session_scope() as session:
        user = _lock_user(session, actor, old_hash)
        if not with_old and not (stored_passwords.must_change(user.password) or user.weak_password):
            raise Conflict(N_("The password has been changed already"))
        _store(session, user, new_hash, actor=actor, now_ms=now_ms, but_id=visitor.session_id)
        return _renew_token(session, visitor, now_ms=now_ms)


def change_password(old: str, new: str, *, actor: Actor, now_ms: Millis) -> None:
    """Change the actor's password and end all of the actor's logins. Opens its own transactions."""
    _check_form(old, new, None, username=actor.username)
    old_hash, new_hash = _hash_both(old, new, actor=actor, now_ms=now_ms)
    with session_scope() as session:
        _store(session, _lock_user(session, actor, old_hash), new_hash, actor=actor, now_ms=now_ms)


def _check_form(old: str | None, new: str, second_entry: str | None, *, username: str) -> None:
    """Raise InvalidInput with all that is wrong with the entered texts; None: not required."""
    errors = InputErrors()
    with errors:
        check_new_password(new, username=username, common=common_passwords())
    with errors:
        if old == "":
            raise InvalidInput("oldPassword", N_("Enter the old password"))
    with errors:
        if second_entry not in (None, new):
            raise InvalidInput("repeated", N_("The two new passwords differ"))
    errors.raise_all()


def _hash_both(old: str, new: str, *, actor: Actor, now_ms: Millis) -> tuple[str, str]:
    """Check the old password, which counts as a login attempt; return its hash and that of the new one."""
    old_hash = login.check_password(
        actor.user_id, old, field="oldPassword", address=actor.address, now_ms=now_ms
    )
    if new == old:
        raise InvalidInput("password", UNCHANGED)
    return old_hash, passwords.hash_password(new)


def _hash_new(new: str, *, actor: Actor) -> str:
    """Check that a password chosen without the old one differs from it, and return its hash."""
    with read_scope() as session:
        user = users.find_user(session, actor.user_id)
    if user is None:
        raise NotFound(MISSING)
    if passwords.verify(user.password, new):
        raise InvalidInput("password", UNCHANGED)
    return passwords.hash_password(new)


def _lock_user(session: Session, actor: Actor, old_hash: str | None) -> User:
    """Return the user, unless an administrator has changed it while the new password was hashed.

    ``old_hash`` is the hash that the old password matched; None: it was not required.
    """
    user = users.lock_user(session, actor.user_id)
    if user is None:
        raise NotFound(MISSING)
    if old_hash is not None and (user.password != old_hash or user.disabled or user.identity):
        raise InvalidInput("oldPassword", login.WRONG)
    return user


def _store(
    session: Session, user: User, new_hash: str, *, actor: Actor, now_ms: Millis, but_id: int = 0
) -> None:
    user.password, user.weak_password = new_hash, WeakPassword.NO
    sessions.delete_of_user(session, user.id, but_id=but_id)
    audit.record(session, "user.password", actor=actor, now_ms=now_ms, target=("user", user.id))


def _renew_token(session: Session, visitor: Visitor, *, now_ms: Millis) -> NewCookie:
    """Give a login a new token, so that a token from before the change is invalid."""
    token = secrets.token_hex(32)
    row = sessions.replace_token(session, visitor.session_id, login.hash_token(token))
    if row is None:
        raise NotFound(N_("This login has ended already"))
    return NewCookie(token, max(1, (row.expires_ms - now_ms) // SECOND_MS) if row.remember else None)
