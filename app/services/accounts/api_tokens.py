"""API tokens: shown once, stored as hashes, and limited to the present rights of their owner.

A personal token acts as its user; a service token (user id 0) belongs to no user and is made by
administrators. The database has only the SHA-256 of a token.
"""

import logging
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, session_scope, transact
from app.database.faults import fault_of
from app.domain.access import api_tokens as rules
from app.domain.access import stored_passwords
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import Actor, Right, require_admin, unknown_actor
from app.domain.code.change_sources import TOKEN, source_text
from app.domain.enums import WeakPassword
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import required_text
from app.domain.text.texts import N_
from app.errors import (
    Conflict,
    ForeignValue,
    InvalidInput,
    NotFound,
    PermissionDenied,
    TooManyAttempts,
    Unauthorized,
)
from app.models.api_token import ApiToken
from app.models.user import User
from app.runtime.logging import QuotedText
from app.services.accounts import login_throttle
from app.services.accounts.actors import actor_of
from app.services.auditing import audit, refusals
from app.store.accounts import api_tokens, throttle, users
from app.store.base.paging import Page, Slice
from app.store.executors import listing as group_lists

logger = logging.getLogger(__name__)

NAME_MAX = 64
#: most tokens of a user, or service tokens, that are not revoked
TOKENS_MAX = 100
#: the last use is written at most this often
LAST_USED_EVERY_MS: Millis = MINUTE_MS
MISSING = N_("There is no such API token")
UNKNOWN = "the API token is unknown"


@dataclass(frozen=True, slots=True)
class TokenDraft:
    """A new token as entered."""

    name: str
    grant: Grant
    #: 0: never
    expires_ms: Millis = 0
    #: belongs to no user; for administrators
    service: bool = False


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token; ``token`` is shown once and stored nowhere."""

    id: int
    token: str


#: id of a user and 0, or 0 and the id of a service token
Holder = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """Holder of a valid token, in whose name a request of the API acts."""

    token_id: int
    name: str
    #: with at most the rights of the token
    actor: Actor
    #: 0: never
    expires_ms: Millis
    last_used_ms: Millis

    @property
    def is_service(self) -> bool:
        """Whether this is a service token, which belongs to no user."""
        return self.actor.user_id == 0

    @property
    def holder(self) -> Holder:
        """The user, with all tokens, or this service token."""
        return (0, self.token_id) if self.is_service else (self.actor.user_id, 0)


def authenticate(token: str, *, address: str, now_ms: Millis) -> ApiCaller:
    """Return the holder of a token; opens its own transactions.

    Records the use, or that the token is refused. Raises Unauthorized, and TooManyAttempts for an address
    that sent too many wrong tokens; a valid token is accepted from there too, since none can be guessed.
    """
    try:
        with read_scope() as session:
            caller = find_bearer(session, token, address=address, now_ms=now_ms)
    except Unauthorized as exc:
        _refuse(exc, address, now_ms=now_ms)
        raise
    if caller.last_used_ms < now_ms - LAST_USED_EVERY_MS:
        try:
            with session_scope() as session:
                note_use(session, caller, now_ms=now_ms)
        except DBAPIError as exc:  # requests that only read go on
            if fault_of(exc) is None:
                raise
    return caller


def find_bearer(session: Session, token: str, *, address: str, now_ms: Millis) -> ApiCaller:
    """Return the holder of a token with what it may do now; reads only. Raises Unauthorized."""
    if not rules.is_well_formed(token):
        raise Unauthorized("the API token is malformed: it is xxl_ and 43 characters")
    row = api_tokens.find_by_hash(session, rules.token_hash(token))
    if row is None:
        raise Unauthorized(UNKNOWN)
    return _caller_of(session, row.token, row.owner, address=address, now_ms=now_ms)


def present_actor(session: Session, caller: ApiCaller, *, now_ms: Millis) -> Actor:
    """Return the actor of a caller with what it may do now, for answers that last. Raises Unauthorized."""
    if not caller.token_id:  # a command on the server
        return caller.actor
    row = api_tokens.find_token(session, caller.token_id)
    if row is None:
        raise Unauthorized(UNKNOWN)
    owner = users.find_user(session, row.user_id) if row.user_id else None
    return _caller_of(session, row, owner, address=caller.actor.address, now_ms=now_ms).actor


def _caller_of(
    session: Session, row: ApiToken, user: User | None, *, address: str, now_ms: Millis
) -> ApiCaller:
    """Return the holder of a stored token; raises Unauthorized for one that is valid no longer."""
    if row.revoked_ms:
        raise Unauthorized("the API token was revoked", name=row.name)
    if 0 < row.expires_ms <= now_ms:
        raise Unauthorized("the API token has expired", name=row.name)
    if row.user_id:
        _require_active(user, row.name)
    actor = _actor(session, row, user, address=address)
    return ApiCaller(row.id, row.name, actor, row.expires_ms, row.last_used_ms)


def note_use(session: Session, caller: ApiCaller, *, now_ms: Millis) -> None:
    """Record the use of a token, at most once a minute."""
    used_before_ms = now_ms - LAST_USED_EVERY_MS
    api_tokens.touch(
        session, caller.token_id, caller.actor.address[:64], now_ms=now_ms, used_before_ms=used_before_ms
    )


def create_token(session: Session, draft: TokenDraft, *, actor: Actor, now_ms: Millis) -> CreatedToken:
    """Create a token of the actor, or a service token. Raises InvalidInput, PermissionDenied, Conflict."""
    draft = check_draft(session, draft, actor=actor, now_ms=now_ms)
    token = rules.PREFIX + secrets.token_urlsafe(rules.RANDOM_BYTES)
    row = ApiToken(
        name=draft.name,
        token_hash=rules.token_hash(token),
        hint=rules.hint_of(token),
        user_id=_owner_id(draft, actor),
        rights=rules.stored_rights(draft.grant),
        group_ids=rules.stored_groups(draft.grant),
        created_ms=now_ms,
        created_by=actor.username[:64],
        expires_ms=draft.expires_ms,
    )
    api_tokens.insert_token(session, row)
    audit.record(
        session, "token.add", actor=actor, now_ms=now_ms, target=("token", row.id), changes=_audit_fields(row)
    )
    return CreatedToken(row.id, token)


def check_draft(session: Session, draft: TokenDraft, *, actor: Actor, now_ms: Millis) -> TokenDraft:
    """Return a draft as it is stored; raises InvalidInput with all errors, PermissionDenied, Conflict."""
    if actor.via and not draft.service:
        raise PermissionDenied(N_("An API token cannot create personal tokens"))
    if draft.service:
        require_admin(actor)
    draft = replace(draft, name=draft.name.strip())
    names = api_tokens.live_names(session, _owner_id(draft, actor))
    _check_values(session, draft, names, actor=actor, now_ms=now_ms)
    if len(names) >= TOKENS_MAX:
        raise Conflict(N_("There are %(limit)s tokens already; revoke one first", limit=TOKENS_MAX))
    return draft


def list_own(session: Session, *, actor: Actor) -> list[ApiToken]:
    """Return the tokens of the actor that are not revoked, newest first."""
    return api_tokens.list_tokens(session, actor.user_id, start=0, length=TOKENS_MAX).rows


def list_all(session: Session, *, actor: Actor, start: int = 0, length: int = 50) -> Page[ApiToken]:
    """Return a page of the tokens of all users that are not revoked, newest first. Administrators only."""
    require_admin(actor)
    return api_tokens.list_tokens(session, None, start=start, length=length)


def list_service(session: Session, *, actor: Actor, before_id: int | None, limit: int) -> Slice[ApiToken]:
    """Return the newest service tokens with an id below ``before_id`` (None: of all). Administrators only."""
    require_admin(actor)
    return api_tokens.list_before(session, 0, before_id=before_id, limit=limit)


def get_token(session: Session, token_id: int, *, actor: Actor) -> ApiToken:
    """Return a token that is not revoked: an own one, or for administrators any."""
    row = api_tokens.find_token(session, token_id)
    if row is None or row.revoked_ms or not (actor.is_admin or row.user_id == actor.user_id != 0):
        raise NotFound(MISSING)
    return row


def revoke_token(session: Session, token_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Revoke a token: an own one, or for administrators any."""
    row = get_token(session, token_id, actor=actor)
    if not api_tokens.revoke(session, token_id, now_ms=now_ms):
        raise NotFound(MISSING)
    audit.record(
        session,
        "token.revoke",
        actor=actor,
        now_ms=now_ms,
        target=("token", token_id),
        changes=_audit_fields(row),
    )


def _require_active(user: User | None, name: str) -> None:
    """Raise Unauthorized if the user of a token may not log in, or has to change the password first."""
    if user is None:
        raise Unauthorized("the user of the API token was deleted", name=name)
    if user.disabled:
        raise Unauthorized("the user of the API token is disabled", name=name)
    if stored_passwords.must_change(user.password) or user.weak_password == WeakPassword.REFUSED:
        raise Unauthorized("the user of the API token has to change the password first", name=name)


def _actor(session: Session, row: ApiToken, user: User | None, *, address: str) -> Actor:
    owner = (
        actor_of(session, user, address=address)
        if user is not None
        else Actor(user_id=0, username=row.name, is_admin=True, address=address)
    )
    grant = rules.parse_grant(row.rights, row.group_ids)
    existing_ids = group_lists.all_ids(session) if owner.is_admin and not grant.admin else ()
    is_admin, rights = rules.limit_actor(owner, grant, existing=existing_ids)
    return replace(owner, is_admin=is_admin, rights=rights, via=source_text(TOKEN, row.name))


def _owner_id(draft: TokenDraft, actor: Actor) -> int:
    return 0 if draft.service else actor.user_id


def _check_values(
    session: Session, draft: TokenDraft, names: Collection[str], *, actor: Actor, now_ms: Millis
) -> None:
    errors, grant = InputErrors(), draft.grant
    with errors:
        required_text("name", draft.name, NAME_MAX, N_("Enter a name"))
        if not draft.name.isprintable():
            raise InvalidInput("name", N_("The name must not contain invisible characters"))
        if draft.name in names:
            raise InvalidInput("name", N_("There is a token with this name already"))
    with errors:
        if not grant.rights and not grant.admin:
            raise InvalidInput("rights", N_("Choose at least one right"))
        if grant.admin and not actor.is_admin:
            raise ForeignValue("rights", N_("Only administrators can create a token with this right"))
    with errors:
        _check_groups(session, grant, actor=actor)
    with errors:
        if draft.expires_ms and not now_ms < draft.expires_ms <= LATEST_MS:
            raise InvalidInput("expires", N_("The expiry has to be in the future"))
    errors.raise_all()


def _check_groups(session: Session, grant: Grant, *, actor: Actor) -> None:
    if grant.group_ids is None:
        return
    if grant.admin:
        raise InvalidInput("groups", N_("A token of administrators cannot be limited to groups"))
    if not grant.group_ids:
        raise InvalidInput("groups", N_("Choose at least one executor group"))
    visible = {
        group_id
        for group_id in group_lists.existing_ids(session, grant.group_ids)
        if actor.may(group_id, Right.VIEW)
    }
    foreign = set(grant.group_ids) - visible
    if foreign:
        raise ForeignValue("groups", N_("There is no executor group with id %(id)s", id=min(foreign)))


def _audit_fields(row: ApiToken) -> dict[str, object]:
    return {
        "name": row.name,
        "kind": "personal_token" if row.user_id else "service_token",
        "username": row.created_by if row.user_id else "",
        "rights": row.rights,
        "permission": row.group_ids or "",
        "expires_ms": row.expires_ms,
    }


def _refuse(error: Unauthorized, address: str, *, now_ms: Millis) -> None:
    """Count and record a wrong token; raise TooManyAttempts if there were too many from its address."""
    refusals.note(
        "refused.api_token",
        unknown_actor(address),
        now_ms=now_ms,
        detail={"reason": str(error)} | ({"name": error.name} if error.name else {}),
    )
    subject = f"token-{login_throttle.address_subject(address)}"
    with read_scope() as session:
        counter = throttle.find_counter(session, subject)
    wait_s = login_throttle.remaining_s(counter.blocked_until_ms if counter else 0, now_ms=now_ms)
    if wait_s:
        raise TooManyAttempts(
            N_("Too many wrong API tokens from this address; try again in %(seconds)s s", seconds=wait_s),
            retry_after_s=wait_s,
        )

    logger.warning("API token refused address=%s reason=%s", address or "-", QuotedText(str(error)))

    def count(session: Session) -> None:
        source = throttle.lock_counter(session, subject, now_ms=now_ms)
        login_throttle.count_source_failure(source, now_ms=now_ms)

    transact(count)
