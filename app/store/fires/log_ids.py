"""Log ids: the highest one, and the identity of the database that generates them."""

import secrets

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database import single_statement
from app.database.rows import bulk
from app.models.lock import DATABASE_ID, Lock
from app.models.log import JobLog

_NEWEST = select(func.max(JobLog.id))
_IDENTITY = select(Lock.lock_name).where(Lock.lock_name.startswith(DATABASE_ID))


def find_newest() -> int:
    """Return the highest id of the runs that there are; opens its own transaction."""
    rows = single_statement.read(_NEWEST, {})
    return int(rows[0][0] or 0)


def find_identity(session: Session) -> str:
    """Return the identity of this database, which its copies have too; empty: it has none yet."""
    return min(session.scalars(_IDENTITY), default="").removeprefix(DATABASE_ID)


def make_identity(session: Session) -> str:
    """Return the identity of this database, made by the first caller; the caller holds the schedule lock."""
    if not (identity := find_identity(session)):
        identity = secrets.token_hex(12)
        bulk.insert_ignore(session, Lock, [{"lock_name": DATABASE_ID + identity}])
    return identity
