"""Logins: rate limit, password check, and login sessions in `xxl_job_session`.

The cookie holds a random token. Only its SHA-256 is stored, so a copy of the database is of no use for
logging in.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.access import stored_passwords
from app.domain.access.permissions import Actor, unknown_actor
from app.domain.enums import WeakPassword
from app.domain.text.texts import N_
from app.errors import InvalidInput, TooManyAttempts
from app.models.session import LoginSession
from app.models.user import User
from app.services.accounts import login_throttle, passwords, weak_passwords
from app.services.accounts.actors import actor_of
from app.services.auditing import audit, refusals
from app.store.accounts import sessions, users
from executor_client.wire.lenient_json import as_text

#: limits without "remember me": since the last use, and in all
IDLE_MS = 12 * 60 * MINUTE_MS
ABSOLUTE_MS = 7 * DAY_MS
REMEMBERED_IDLE_MS = 90 * DAY_MS
REMEMBERED_ABSOLUTE_MS = 365 * DAY_MS
#: the last-seen time is written at most this often
LAST_SEEN_EVERY_MS = MINUTE_MS
WRONG = N_("Wrong password")


@dataclass(frozen=True, slots=True)
class Attempt:
    """Login attempt: the entered values and the client."""

    username: str
    password: str
    remember: bool
    address: str
    agent: str
    #: the attempt came by the endpoint of scripts, not by the page
    is_script: bool = False


@dataclass(frozen=True, slots=True)
class Login:
    """A new login; ``token`` goes into the cookie and is stored nowhere else."""

    token: str
    username: str
    actor: Actor
    must_change: bool
    #: None: until the browser is closed
    max_age_s: int | None


@dataclass(frozen=True, slots=True)
class Visitor:
    """Login that a request belongs to."""

    actor: Actor
    session_id: int
    token_hash: str
    last_seen_ms: Millis
    must_change: bool
    #: see ``WeakPassword``
    weak_password: int
    language: str
    time_zone: str
    created_ms: Millis
    #: when the password was entered again, before code was saved; 0: not yet
    confirmed_ms: Millis = 0
    #: logged in by the OpenID provider
    sign_on: bool = False


def log_in(attempt: Attempt, *, now_ms: Millis, keep_hash: bool = False) -> Login:
    """Check name and password and open a login. Opens its own transactions, since the check takes long.

    Raises InvalidInput, with the same text for an unknown user and a wrong password, and TooManyAttempts
    before either is checked. ``keep_hash`` keeps an adopted hash, for a Java admin on the same database.
    """
    username, password, address = as_text(attempt.username).strip(), attempt.password, attempt.address
    if not username or not password.strip():
        raise InvalidInput("userName", N_("Enter user name and password"))
    old_hash = _begin(username, address, now_ms=now_ms)
    if not passwords.verify(old_hash, password):
        _record_refusal(username, address, now_ms=now_ms)
        raise InvalidInput("password", N_("Wrong user name or password"))
    is_to_renew = old_hash is not None and _is_to_renew(old_hash, keep_hash)
    new_hash = passwords.hash_password(password) if is_to_renew else None
    is_common = weak_passwords.is_common(password, username)

    def finish(session: Session) -> Login | None:
        user = users.lock_by_name(session, username)
        if user is None or user.disabled or user.password != old_hash:  # changed meanwhile
            raise InvalidInput("password", N_("Wrong user name or password"))
        user.password = new_hash or user.password
        user.weak_password = weak_passwords.updated_mark(user.weak_password, is_common=is_common)
        login_throttle.release_attempt(session, username, address, now_ms=now_ms)
        if attempt.is_script and user.weak_password == WeakPassword.REFUSED:
            return None
        return open_session(session, user, attempt, now_ms=now_ms)

    new_login = transact(finish)
    if new_login is None:  # The password was right, so no failure is counted.
        _record_refusal(username, address, now_ms=now_ms, reason="common-password")
        raise InvalidInput("password", weak_passwords.REFUSED_TO_SCRIPTS)
    return new_login


def check_password(user_id: int, password: str, *, field: str, address: str, now_ms: Millis) -> str:
    """Check the password of a logged-in user, as before changing it; return the stored hash it matches.

    Counts as a login attempt. Raises InvalidInput and TooManyAttempts.
    """
    with read_scope() as session:
        user = users.find_user(session, user_id)
    if user is None:
        raise InvalidInput(field, WRONG)
    username = user.username
    password_hash = _begin(username, address, now_ms=now_ms, is_logged_in=True)
    if not passwords.verify(password_hash, password) or password_hash is None:
        _record_refusal(username, address, now_ms=now_ms)
        raise InvalidInput(field, WRONG)
    transact(lambda session: login_throttle.release_attempt(session, username, address, now_ms=now_ms))
    return password_hash


def open_session(
    session: Session, user: User, attempt: Attempt, *, now_ms: Millis, sign_on: bool = False
) -> Login:
    """Open a login for a user whose password was checked, here or (``sign_on``) by the OpenID provider."""
    token = secrets.token_hex(32)
    # Each login deletes some expired ones, because scripts that log in for every call leave many.
    sessions.delete_dead(
        session, now_ms=now_ms, seen_from_ms=now_ms - IDLE_MS, remembered_from_ms=now_ms - REMEMBERED_IDLE_MS
    )
    life_ms = REMEMBERED_ABSOLUTE_MS if attempt.remember else ABSOLUTE_MS
    row = LoginSession(
        token_hash=hash_token(token),
        user_id=user.id,
        remember=int(attempt.remember),
        created_ms=now_ms,
        last_seen_ms=now_ms,
        expires_ms=now_ms + life_ms,
        address=attempt.address[:64],
        agent=attempt.agent[:255],
        sign_on=int(sign_on),
    )
    session.add(row)
    actor = Actor(user_id=user.id, username=user.username, is_admin=user.is_admin, address=attempt.address)
    changes = {"sign_on": True} if sign_on else None
    audit.record(session, "login", actor=actor, now_ms=now_ms, target=("user", user.id), changes=changes)
    return Login(
        token,
        user.username,
        actor,
        stored_passwords.must_change(user.password) or (bool(user.weak_password) and not attempt.is_script),
        life_ms // SECOND_MS if attempt.remember else None,
    )


def find_session(session: Session, tokens: Sequence[str], *, address: str, now_ms: Millis) -> Visitor | None:
    """Return the first live login of an enabled user among the cookie values, or None."""
    if not tokens:
        return None
    for row, user in sessions.find_with_user(session, [hash_token(token) for token in tokens]):
        if _is_live(row, now_ms) and not user.disabled:
            return _visitor(session, row, user, address)
    return None


def touch(session: Session, visitor: Visitor, *, now_ms: Millis) -> None:
    """Update the last-seen time of a login."""
    sessions.touch(session, visitor.session_id, now_ms=now_ms, seen_before_ms=now_ms - LAST_SEEN_EVERY_MS)


def needs_touch(visitor: Visitor, now_ms: Millis) -> bool:
    """Whether ``touch`` would write."""
    return visitor.last_seen_ms < now_ms - LAST_SEEN_EVERY_MS


def close_session(session: Session, visitor: Visitor, *, now_ms: Millis) -> None:
    """Log out."""
    sessions.delete_by_hash(session, [visitor.token_hash])
    audit.record(
        session, "logout", actor=visitor.actor, now_ms=now_ms, target=("user", visitor.actor.user_id)
    )


def hash_token(token: str) -> str:
    """Return the stored form of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _is_to_renew(password_hash: str, keep_hash: bool) -> bool:
    return (
        passwords.is_outdated(password_hash)
        and not stored_passwords.must_change(password_hash)
        and not (keep_hash and stored_passwords.is_bare(password_hash))
    )


def _is_live(row: LoginSession, now_ms: Millis) -> bool:
    idle_ms = REMEMBERED_IDLE_MS if row.remember else IDLE_MS
    return now_ms < row.expires_ms and now_ms - row.last_seen_ms <= idle_ms


def _visitor(session: Session, row: LoginSession, user: User, address: str) -> Visitor:
    return Visitor(
        actor=actor_of(session, user, address=address),
        session_id=row.id,
        token_hash=row.token_hash,
        last_seen_ms=row.last_seen_ms,
        must_change=stored_passwords.must_change(user.password),
        weak_password=WeakPassword.NO if row.sign_on else user.weak_password,
        language=user.language,
        time_zone=user.time_zone,
        created_ms=row.created_ms,
        confirmed_ms=row.confirmed_ms,
        sign_on=bool(row.sign_on),
    )


def _begin(username: str, address: str, *, now_ms: Millis, is_logged_in: bool = False) -> str | None:
    """Count an attempt in its own transaction; return the stored password to match.

    None: there is no enabled user. Records that a throttled attempt is refused.
    """

    def begin(session: Session) -> str | None:
        login_throttle.reserve_attempt(session, username, address, now_ms=now_ms, is_logged_in=is_logged_in)
        user = users.find_by_name(session, username)
        return user.password if user is not None and not user.disabled else None

    try:
        return transact(begin)
    except TooManyAttempts:
        note_wait(username, address, now_ms=now_ms)
        raise


def note_wait(username: str, address: str, *, now_ms: Millis) -> None:
    """Record a login refused during a wait; outside of transactions."""
    actor = unknown_actor(address, username)
    if refusals.note("refused.login", actor, now_ms=now_ms):
        refusals.log_login(username, address, "wait")


def _record_refusal(username: str, address: str, *, now_ms: Millis, reason: str = "password") -> None:
    refusals.log_login(username, address, reason)
    with session_scope() as session:
        actor = unknown_actor(address, username)
        failures = login_throttle.count_failures(session, username, address)
        audit.record(
            session,
            "login.refused",
            actor=actor,
            now_ms=now_ms,
            changes={"failures": failures},
        )
