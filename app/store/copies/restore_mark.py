"""Mark of a restored database, which keeps programs from starting until its fires are settled."""

from sqlalchemy import Connection, delete, insert, inspect, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.models.lock import RESTORE_LOCK, Lock


def is_unsettled(connection: Connection) -> bool:
    """Whether the database was restored and its fires are not settled yet."""
    if not inspect(connection).has_table(Lock.__tablename__):
        return False
    return connection.scalar(select(Lock.lock_name).where(Lock.lock_name == RESTORE_LOCK)) is not None


def mark_unsettled(connection: Connection) -> None:
    """Keep every program from starting on this database until its fires are settled."""
    if not is_unsettled(connection):
        connection.execute(insert(Lock).values(lock_name=RESTORE_LOCK))


def mark_settled(session: Session) -> None:
    """Let the programs start."""
    affected(session, delete(Lock).where(Lock.lock_name == RESTORE_LOCK))
