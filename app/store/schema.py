"""Schema version of the database, as Alembic stores it."""

from sqlalchemy import Connection, inspect, text

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
