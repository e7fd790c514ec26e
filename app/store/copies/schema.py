"""Schema version of the database, as Alembic stores it."""

from sqlalchemy import Connection, inspect, select, text

from app.clock import Millis
from app.models.log import JobLog

#: Alembic's table
VERSION_TABLE = "alembic_version"


def find_revision(connection: Connection) -> str | None:
    """Return the revision of the schema; None if there is none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # nosec B608
    return revision


def change_revision(connection: Connection, revision: str) -> None:
    """Change the revision of a database that has one."""
    connection.execute(
        text(f"UPDATE {VERSION_TABLE} SET version_num = :revision"),  # nosec B608
        {"revision": revision},
    )


def adopts_runs(connection: Connection, *, before_ms: Millis) -> bool:
    """Whether the database is still one of XXL-JOB alone, with runs triggered before then."""
    if find_revision(connection) is not None or not inspect(connection).has_table(JobLog.__tablename__):
        return False
    older = select(JobLog.id).where(JobLog.trigger_time < before_ms)
    return connection.scalar(older.limit(1)) is not None
