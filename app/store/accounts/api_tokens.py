"""Statements on `xxl_job_token`: API tokens."""

from dataclasses import dataclass, replace

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.domain.access.api_tokens import parse_grant, stored_groups
from app.models.api_token import ApiToken
from app.models.user import User
from app.store.base.paging import Page, Slice, fetch_page
from app.store.executors import listing as group_lists

#: The statement is built once, because every request of the API begins with it.
_BY_HASH = (
    select(ApiToken, User)
    .outerjoin(User, User.id == ApiToken.user_id)
    .where(ApiToken.token_hash == bindparam("wanted"))
)


@dataclass(frozen=True, slots=True)
class OwnedToken:
    """A token with its owner; the owner of a service token, and of a deleted user's, is None."""

    token: ApiToken
    owner: User | None


def find_by_hash(session: Session, token_hash: str) -> OwnedToken | None:
    """Return the token with this hash and its owner, or None."""
    row = session.execute(_BY_HASH, {"wanted": token_hash}).first()
    return OwnedToken(row[0], row[1]) if row is not None else None


def find_token(session: Session, token_id: int) -> ApiToken | None:
    """Return a token or None."""
    return session.get(ApiToken, token_id)


def list_tokens(session: Session, user_id: int | None, *, start: int, length: int) -> Page[ApiToken]:
    """Return a page of the tokens of a user (0: service tokens, None: all) that are not revoked.

    Newest first; expired ones are among them.
    """
    query = select(ApiToken).where(ApiToken.revoked_ms == 0).order_by(ApiToken.id.desc())
    if user_id is not None:
        query = query.where(ApiToken.user_id == user_id)
    return fetch_page(session, query, start=start, length=length)


def list_before(session: Session, user_id: int, *, before_id: int | None, limit: int) -> Slice[ApiToken]:
    """Return the newest tokens of a user (0: service tokens), not revoked, with an id below ``before_id``."""
    query = select(ApiToken).where(ApiToken.user_id == user_id, ApiToken.revoked_ms == 0)
    if before_id is not None:
        query = query.where(ApiToken.id < before_id)
    rows = list(session.scalars(query.order_by(ApiToken.id.desc()).limit(limit + 1)))
    return Slice(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)


def live_names(session: Session, user_id: int) -> list[str]:
    """Return the names of a user's tokens (0: service tokens) that are not revoked."""
    query = select(ApiToken.name).where(ApiToken.user_id == user_id, ApiToken.revoked_ms == 0)
    return list(session.scalars(query))


def insert_token(session: Session, token: ApiToken) -> None:
    """Insert a token and set its id."""
    session.add(token)
    session.flush()


def revoke(session: Session, token_id: int, *, now_ms: Millis) -> bool:
    """Revoke a token; False if it is revoked already."""
    statement = update(ApiToken).where(ApiToken.id == token_id, ApiToken.revoked_ms == 0)
    return affected(session, statement.values(revoked_ms=now_ms)) == 1


def touch(session: Session, token_id: int, address: str, *, now_ms: Millis, used_before_ms: Millis) -> bool:
    """Set when and from where a token was used, unless it was used since; return whether it was set."""
    statement = update(ApiToken).where(ApiToken.id == token_id, ApiToken.last_used_ms < used_before_ms)
    return affected(session, statement.values(last_used_ms=now_ms, last_address=address)) == 1


def delete_of_user(session: Session, user_id: int) -> None:
    """Delete the tokens of a user, so that a later user with the same id inherits none."""
    affected(session, delete(ApiToken).where(ApiToken.user_id == user_id))


def forget_missing_groups(session: Session) -> None:
    """Take deleted groups out of the tokens limited to them; a later group with such an id is not theirs."""
    tokens = list(session.scalars(select(ApiToken).where(ApiToken.group_ids.is_not(None))))
    existing = group_lists.all_ids(session) if tokens else set()
    for token in tokens:
        grant = parse_grant(token.rights, token.group_ids)
        if grant.group_ids is not None and not grant.group_ids <= existing:
            token.group_ids = stored_groups(replace(grant, group_ids=grant.group_ids & existing))
    session.flush()


def delete_ended(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete up to ``limit`` tokens that were revoked or expired before an instant; return how many."""
    has_ended = (ApiToken.revoked_ms.between(1, before_ms - 1)) | (
        ApiToken.expires_ms.between(1, before_ms - 1)
    )
    ids = list(session.scalars(select(ApiToken.id).where(has_ended).order_by(ApiToken.id).limit(limit)))
    return affected(session, delete(ApiToken).where(ApiToken.id.in_(ids))) if ids else 0
