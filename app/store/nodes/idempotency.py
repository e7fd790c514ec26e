"""Statements on `xxl_job_idempotency`: answers of requests with an idempotency key."""

from sqlalchemy import and_, bindparam, delete, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.models.api_token import IdempotentRequest

Row = IdempotentRequest
#: The statement is built once, because requests with a key are frequent.
_UPDATE_ANSWER = (
    update(bulk.table_of(Row))
    .where(Row.key_hash == bindparam("of_key"))
    .values({name: bindparam(name) for name in ("status", "location", "body")})
)


def insert_key(
    session: Session, key_hash: str, request_hash: str, *, now_ms: Millis, kept_ms: Millis, open_ms: Millis
) -> bool:
    """Store a key unless it is there; False if it is.

    One older than ``kept_ms`` counts as absent, without an answer one older than ``open_ms``.
    """
    row = {"key_hash": key_hash, "request_hash": request_hash, "created_ms": now_ms}
    if bulk.insert_if_absent(session, Row, row):
        return True
    is_over = or_(Row.created_ms < now_ms - kept_ms, and_(Row.status == 0, Row.created_ms < now_ms - open_ms))
    old = delete(Row).where(Row.key_hash == key_hash, is_over)
    return affected(session, old) == 1 and bulk.insert_if_absent(session, Row, row)


def get_key(session: Session, key_hash: str) -> IdempotentRequest:
    """Return the row of a key that is there."""
    return session.scalars(select(Row).where(Row.key_hash == key_hash)).one()


def update_answer(session: Session, key_hash: str, *, status: int, location: str, body: str) -> None:
    """Store the answer of a key."""
    session.flush()
    answer = {"of_key": key_hash, "status": status, "location": location, "body": body}
    session.connection().execute(_UPDATE_ANSWER, answer)


def delete_key(session: Session, key_hash: str) -> None:
    """Delete the row of a key."""
    affected(session, delete(Row).where(Row.key_hash == key_hash))


def delete_old(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete up to ``limit`` rows that are older; return how many."""
    old = select(Row.id).where(Row.created_ms < before_ms)
    ids = list(session.scalars(old.order_by(Row.created_ms).limit(limit)))
    return affected(session, delete(Row).where(Row.id.in_(ids))) if ids else 0
