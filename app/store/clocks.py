"""The database's own clock."""

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.clock import Millis

_STATEMENTS = {
    "postgresql": "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    # not by way of the server's local time: of the hour that comes twice in autumn, one would be an hour off
    "mysql": "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000",
}


def database_now_ms(session: Session) -> Millis | None:
    """Return the database server's clock; None for SQLite, whose clock is this machine's."""
    statement = _STATEMENTS.get(session.get_bind().dialect.name)
    return None if statement is None else int(session.execute(text(statement)).scalar_one())
