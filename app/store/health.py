"""Health check of the database."""

from sqlalchemy import text
from sqlalchemy.orm import Session


def ping(session: Session) -> None:
    """Run the cheapest statement; raises SQLAlchemyError if the database does not answer."""
    session.execute(text("SELECT 1"))
