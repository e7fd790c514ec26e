"""Schema version of the database, as Alembic stores it, and the tables of XXL-JOB that have none."""

from dataclasses import dataclass

from sqlalchemy import BigInteger, Connection, Inspector, func, inspect, select, text

from app.clock import Millis
from app.models.archive import Setting
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.user import User

#: Alembic's table
VERSION_TABLE = "alembic_version"


@dataclass(frozen=True, slots=True)
class FormerTables:
    """Tables of XXL-JOB that no upgrade has changed yet."""

    #: releases that have such tables: ``2.3 to 2.4``
    releases: str
    jobs: int
    runs: int


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


def has_jobs(connection: Connection) -> bool:
    """Whether the database has a job."""
    if not inspect(connection).has_table(Job.__tablename__):
        return False
    return connection.scalar(select(Job.id).limit(1)) is not None


def has_facts(connection: Connection) -> bool:
    """Whether the database says what settings mean that are not set."""
    return inspect(connection).has_table(Setting.__tablename__)


def find_former_tables(connection: Connection) -> FormerTables | None:
    """Return the tables of XXL-JOB in a database without a revision; None if they are not all there."""
    inspector = inspect(connection)
    table_names = {model.__tablename__ for model in (Group, Job, JobLog, Registration, User)}
    if not table_names <= set(inspector.get_table_names()):
        return None
    jobs, runs = (
        connection.scalar(select(func.count()).select_from(model.__table__)) or 0 for model in (Job, JobLog)
    )
    return FormerTables(_releases(inspector), jobs, runs)


def _releases(inspector: Inspector) -> str:
    """Return the releases that have these tables. Source: docs/reference/schema.md, section 11."""
    if "job_cron" in _types(inspector, Job.__tablename__):
        return "2.2"
    if "token" in _types(inspector, User.__tablename__):
        ids = _types(inspector, Registration.__tablename__)["id"]
        return "3.4" if isinstance(ids, BigInteger) else "3.2 to 3.3"
    indexes = inspector.get_indexes(Registration.__tablename__)
    return "2.5 to 3.1" if any(index["unique"] for index in indexes) else "2.3 to 2.4"


def _types(inspector: Inspector, table: str) -> dict[str, object]:
    return {column["name"]: column["type"] for column in inspector.get_columns(table)}
