"""Clock of the database server."""

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.dialects.choice import dialect_of


def database_now_ms(session: Session) -> Millis | None:
    """Return the database server's clock; None for SQLite, which has no server."""
    statement = dialect_of(session).clock_statement
    return None if statement is None else int(session.execute(text(statement)).scalar_one())
