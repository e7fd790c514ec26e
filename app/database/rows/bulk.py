"""Bulk statements, the same for their callers on every database.

Measured (docs/reference/pipeline.md, section 10): MySQL drivers do not batch UPDATE, and SQLite cannot return
the ids of many rows in order. So each database has a module for rows: ``rows.sqlite``,
``rows.postgresql`` (one array per column) and ``rows.mysql`` (also MariaDB: the values in the text).
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from operator import itemgetter
from typing import Any, Protocol

from sqlalchemy import (
    CompoundSelect,
    Insert,
    Select,
    Table,
    insert,
)
from sqlalchemy.engine import Row as SqlRow
from sqlalchemy.orm import Session

from app.database.rows import mysql as mysql_rows
from app.database.rows import postgresql as postgresql_rows
from app.database.rows import sqlite as sqlite_rows
from app.database.rows.columns import Columns, columns_of
from app.database.sql import direct
from app.database.sql.in_list import WANTED
from app.models.base import Base

Row = dict[str, Any]


class _Rows(Protocol):
    """Statements on rows given as columns."""

    def insert(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Insert the rows."""

    def insert_with_ids(
        self, session: Session, table: Table, names: Sequence[str], columns: Columns
    ) -> list[int]:
        """Insert the rows; return their ids in order."""

    def update(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Update the rows by the first column, the id."""


_ROWS_OF: dict[str, _Rows] = {"sqlite": sqlite_rows, "postgresql": postgresql_rows, "mysql": mysql_rows}


def table_of(model: type[Base]) -> Table:
    """Return the table of a model."""
    table = model.__table__
    assert isinstance(table, Table)
    return table


def read_rows(
    session: Session, statement: Select[Any] | CompoundSelect[Any], parameters: Row | None = None
) -> Sequence[SqlRow[Any]]:
    """Return plain rows, without the ORM's loading, which costs a claim as much as the query itself."""
    session.flush()
    return session.connection().execute(statement, parameters).all()


def read_among(
    session: Session, statement: Select[Any], values: Sequence[int] | Sequence[str]
) -> Sequence[Sequence[Any]]:
    """Return plain rows of a statement made once, whose only parameter is ``among``."""
    return direct.read(session, statement, {WANTED: list(values)})


def insert_with_ids(session: Session, model: type[Base], rows: Sequence[Row]) -> list[int]:
    """Insert rows with the same columns; return their new ids, in the order of the rows."""
    if not rows:
        return []
    table, names, dialect = table_of(model), [*rows[0]], session.get_bind().dialect
    columns = columns_of(table, names, rows, dialect)
    return _ROWS_OF[dialect.name].insert_with_ids(session, table, names, columns)


def insert_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, the others with the defaults of the model."""
    if rows:
        session.connection().execute(_insert(table_of(model)), list(rows))


def insert_whole(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, the others with the defaults of the database."""
    if not rows:
        return
    table, names, dialect = table_of(model), [*rows[0]], session.get_bind().dialect
    _ROWS_OF[dialect.name].insert(session, table, names, columns_of(table, names, rows, dialect))


@cache
def _insert(table: Table) -> Insert:
    return insert(table)


def insert_ignore(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, except those that would violate a unique key."""
    if rows:
        connection = session.connection()
        connection.execute(_insert_unless_present(table_of(model), connection.dialect.name), list(rows))


def insert_if_absent(session: Session, model: type[Base], row: Row) -> bool:
    """Insert a row unless it would violate a unique key; waits for another transaction that inserts it."""
    session.flush()
    connection = session.connection()
    return connection.execute(_insert_if_absent(table_of(model), connection.dialect.name), row).rowcount == 1


@cache
def _insert_if_absent(table: Table, dialect: str) -> Insert:
    # SQLAlchemy compiles the inserts of its dialects anew each time, but not those of SQLite and MySQL here
    added: Insert
    added = _insert_of(dialect, table).on_conflict_do_nothing() if dialect == "postgresql" else insert(table)
    added = added.prefix_with("OR IGNORE", dialect="sqlite").prefix_with("IGNORE", dialect="mysql")
    return added.inline().execution_options(preserve_rowcount=True)


@cache
def _insert_unless_present(table: Table, name: str) -> Insert:
    added: Any = _insert_of(name, table)
    ignoring: Insert = added.prefix_with("IGNORE") if name == "mysql" else added.on_conflict_do_nothing()
    return ignoring


def _insert_of(dialect: str, table: Table) -> Any:
    """Return the INSERT of a dialect; the dialects of other databases are not loaded, they take 3 MB."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


def upsert(session: Session, model: type[Base], rows: Sequence[Row], *, key: Sequence[str]) -> None:
    """Insert rows with the same columns; update those whose ``key``, which must be unique, exists."""
    if not rows:
        return
    table, name = table_of(model), session.get_bind().dialect.name
    names = [column for column in rows[0] if column not in key]
    # concurrent writers of the same rows lock them in the same order
    ordered = sorted(rows, key=itemgetter(*key))
    statement = _insert_of(name, table)
    if name == "mysql":
        session.execute(
            statement.on_duplicate_key_update({column: statement.inserted[column] for column in names}),
            ordered,
        )
        return
    session.execute(
        statement.on_conflict_do_update(
            index_elements=list(key), set_={column: statement.excluded[column] for column in names}
        ),
        ordered,
    )


def update_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Update rows by ``id``; all have the same columns. The caller holds their locks."""
    if not rows:
        return
    table, dialect = table_of(model), session.get_bind().dialect
    names = ["id", *(name for name in rows[0] if name != "id")]
    ordered = sorted(rows, key=itemgetter("id"))
    columns = columns_of(table, names, ordered, dialect)
    _ROWS_OF[dialect.name].update(session, table, names, columns)
