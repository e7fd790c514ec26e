"""Dialect of SQLite: one statement, executed for each row.

Rows go to the driver as tuples, because SQLAlchemy builds a dictionary of parameters per row, which takes a
quarter of the time of a claim or callback.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Insert, Table, func, insert, select, text
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session

from app.database.connections import sqlite as connections
from app.database.dialects.base import Dialect
from app.database.dialects.columns import Columns
from app.database.promotion_mark import check_mark
from app.database.sql import direct
from app.settings.config import Config

_LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"


class Sqlite(Dialect):
    """SQLite: a file, so without a server, its clock and its locks."""

    name = "sqlite"
    clock_statement = None
    version_statement = "SELECT sqlite_version()"
    connections_max_statement = None
    other_sessions_statement = None
    own_schema = None
    copy_name = "database.sqlite"

    def engine_options(self, config: Config) -> dict[str, Any]:
        """Return the options for the driver of the standard library."""
        return connections.engine_options()

    def watch(self, engine: Engine, config: Config) -> None:
        """Set up the connections to a file, which this creates."""
        connections.watch(engine)

    @contextmanager
    def single_transaction(self, connection: Any, *, is_writing: bool) -> Iterator[None]:
        """Wait for other writers before a write; the pool rolls back what fails."""
        if is_writing:
            connection.begin_immediate(connections.BUSY_TIMEOUT_MS)
        check_mark(connection)
        yield
        if is_writing:
            connection.commit()

    def insert_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Execute an INSERT for each row."""
        direct.execute_many(session, _insert_text(table, names), list(zip(*columns, strict=True)))

    def insert_with_ids(
        self, session: Session, table: Table, names: Sequence[str], columns: Columns
    ) -> list[int]:
        """Insert rows with ids of our own, because SQLite cannot return those of many rows in order."""
        # The transaction started as IMMEDIATE, so that no other can use these ids.
        rows = direct.execute(session, _LAST_ID, (table.name,))
        last = rows[0][0] if rows else session.execute(select(func.max(table.c.id))).scalar() or 0
        ids = list(range(last + 1, last + 1 + len(columns[0])))
        self.insert_rows(session, table, ["id", *names], [ids, *columns])
        return ids

    def update_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Execute an UPDATE for each row."""
        ids, *columns_to_set = columns
        sets = ", ".join(f"{name} = ?" for name in names[1:])
        statement = f"UPDATE {table.name} SET {sets} WHERE id = ?"  # nosec B608  # names from the model
        direct.execute_many(session, statement, list(zip(*columns_to_set, ids, strict=True)))

    def insert_if_absent(self, table: Table) -> Insert:
        """Return INSERT OR IGNORE."""
        return _insert_or_ignore(table)

    def advisory_lock(self, connection: Connection, name: str) -> None:
        """Return None: a file has no such locks."""

    def idle_allowance(self, seconds: int) -> None:
        """Return None: no server ends a connection."""

    def table_wait_limit(self, seconds: int) -> None:
        """Return None: the busy timeout limits all waits."""

    def last_id(self, connection: Connection, table: str) -> int:
        """Return what AUTOINCREMENT has noted."""
        last = connection.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table})
        return last or 0

    def skip_ids(self, connection: Connection, table: str, last: int, row: Mapping[str, int]) -> None:
        """Change what AUTOINCREMENT has noted."""
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table})
        statement = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
        connection.execute(statement, {"name": table, "last": last})

    def continue_ids(self, connection: Connection, table: str, last: int) -> None:
        """Change what AUTOINCREMENT has noted, which counts only if it is above the highest id."""
        self.skip_ids(connection, table, last, {})

    def widening(self, table: str, column: str, *, characters: int, octets: int) -> None:
        """Return None: columns hold texts of any length."""

    def scratch_grant(self, url: URL, prefix: str) -> None:
        """Return None: no rights are needed for a file."""


@cache
def _insert_or_ignore(table: Table) -> Insert:
    # SQLAlchemy compiles ON CONFLICT anew each time, but not this
    return insert(table).prefix_with("OR IGNORE").inline().execution_options(preserve_rowcount=True)


def _insert_text(table: Table, names: Sequence[str]) -> str:
    marks = ", ".join("?" * len(names))
    # The names are those of the model.
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"  # nosec B608
