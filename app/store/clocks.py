"""The database's own clock."""

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.clock import Millis

_STATEMENTS = {
    "postgresql": "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    "mysql": "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
}


def database_now_ms(session: Session) -> Millis | None:
    """Return the database server's clock; None for SQLite, whose clock is this machine's."""
    statement = _STATEMENTS.get(session.get_bind().dialect.name)
    return None if statement is None else int(session.execute(text(statement)).scalar_one())
