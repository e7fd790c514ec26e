"""Bulk statements, the same for their callers on every database.

Measured (docs/reference/pipeline.md, section 10): MySQL drivers do not batch UPDATE, and SQLite cannot return
the ids of many rows in order. So each dialect has statements of its own (``app.database.dialects``).
"""

from collections.abc import Collection, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    CompoundSelect,
    Dialect,
    Insert,
    Select,
    Table,
    insert,
)
from sqlalchemy.engine import Row as SqlRow
from sqlalchemy.orm import Session

from app.database.dialects.choice import dialect_of
from app.database.dialects.columns import columns_of
from app.database.sql import direct
from app.database.sql.in_list import WANTED
from app.models.base import Base

Row = dict[str, Any]


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
    session: Session, statement: Select[Any] | CompoundSelect[Any], values: Sequence[int] | Sequence[str]
) -> Sequence[Sequence[Any]]:
    """Return plain rows of a statement made once, whose only parameter is ``among``."""
    return direct.read(session, statement, {WANTED: list(values)})


def insert_with_ids(session: Session, model: type[Base], rows: Sequence[Row]) -> list[int]:
    """Insert rows with the same columns; return their new ids, in the order of the rows."""
    if not rows:
        return []
    table, names, bind = table_of(model), [*rows[0]], session.get_bind()
    columns = columns_of(table, names, rows, bind.dialect)
    return dialect_of(bind).insert_with_ids(session, table, names, columns)


def insert_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, the others with the defaults of the model."""
    if rows:
        session.connection().execute(_insert(table_of(model)), list(rows))


def insert_whole(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, the others with the defaults of the database."""
    if not rows:
        return
    table, names, bind = table_of(model), [*rows[0]], session.get_bind()
    columns = columns_of(table, names, rows, bind.dialect)
    dialect_of(bind).insert_rows(session, table, names, columns)


@cache
def _insert(table: Table) -> Insert:
    return insert(table)


def insert_ignore(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, except those that would violate a unique key."""
    if rows:
        connection = session.connection()
        statement = dialect_of(connection).insert_ignoring(table_of(model))
        connection.execute(_compile(statement, connection.dialect, tuple(rows[0])), list(rows))


@cache
def _compile(statement: Insert, dialect: Dialect, names: tuple[str, ...]) -> Any:
    # SQLAlchemy compiles an INSERT that ignores rows anew each time, which takes as long as a few rows.
    return statement.compile(dialect=dialect, column_keys=list(names), for_executemany=True)


def insert_if_absent(session: Session, model: type[Base], row: Row) -> bool:
    """Insert a row unless it would violate a unique key; waits for another transaction that inserts it."""
    session.flush()
    connection = session.connection()
    result = connection.execute(dialect_of(connection).insert_if_absent(table_of(model)), row)
    return result.rowcount == 1


def upsert(
    session: Session,
    model: type[Base],
    rows: Sequence[Row],
    *,
    key: Sequence[str],
    constant: Collection[str] = (),
) -> None:
    """Insert rows with the same columns; update those whose ``key``, which must be unique, exists.

    ``constant``: columns that an update leaves as they are.
    """
    if not rows:
        return
    names = [column for column in rows[0] if column not in (*key, *constant)]
    # Concurrent writers of the same rows lock them in the same order.
    rows_in_order = sorted(rows, key=itemgetter(*key))
    session.execute(dialect_of(session).upsert(table_of(model), names, key), rows_in_order)


def update_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Update rows by ``id``; all have the same columns. The caller holds their locks."""
    if not rows:
        return
    table, bind = table_of(model), session.get_bind()
    names = ["id", *(name for name in rows[0] if name != "id")]
    rows_in_order = sorted(rows, key=itemgetter("id"))
    columns = columns_of(table, names, rows_in_order, bind.dialect)
    dialect_of(bind).update_rows(session, table, names, columns)
