"""Confirmation of a login before code is saved: by the password, once in each login.

A login by an OpenID provider has no password here. It counts as confirmed while it is fresh; later the user
has to log in again.
"""

from app.clock import MINUTE_MS, Millis
from app.database.engine import session_scope
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.accounts import login
from app.services.accounts.login import Visitor
from app.services.auditing import audit
from app.store.accounts import sessions

#: how long a login by the provider counts as confirmed
SIGN_ON_FRESH_MS: Millis = 15 * MINUTE_MS


def needs_confirmation(visitor: Visitor, *, now_ms: Millis) -> bool:
    """Whether a login has to be confirmed before it saves code."""
    if visitor.sign_on:
        return now_ms - visitor.created_ms > SIGN_ON_FRESH_MS
    return not visitor.confirmed_ms


def confirm(visitor: Visitor, password: str, *, now_ms: Millis) -> None:
    """Confirm a login with the user's password; opens its own transactions.

    The check counts as a login attempt. Raises InvalidInput and TooManyAttempts.
    """
    if not needs_confirmation(visitor, now_ms=now_ms):
        return
    if visitor.sign_on:
        raise InvalidInput("password", N_("Log in again, then save within 15 minutes"))
    if not password:
        raise InvalidInput("password", N_("Enter your password"))
    actor = visitor.actor
    login.check_password(actor.user_id, password, field="password", address=actor.address, now_ms=now_ms)
    with session_scope() as session:
        sessions.confirm(session, visitor.session_id, now_ms=now_ms)
        audit.record(session, "login.confirm", actor=actor, now_ms=now_ms, target=("user", actor.user_id))
