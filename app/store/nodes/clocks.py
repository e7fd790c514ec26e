"""Clock of the database server."""

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.clock import Millis

_STATEMENTS = {
    "postgresql": "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    # not through the server's local time, which is ambiguous for an hour in autumn
    "mysql": "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000",
}


def database_now_ms(session: Session) -> Millis | None:
    """Return the database server's clock; None for SQLite, which has no server."""
    statement = _STATEMENTS.get(session.get_bind().dialect.name)
    return None if statement is None else int(session.execute(text(statement)).scalar_one())
