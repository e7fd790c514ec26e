"""Rows for PostgreSQL: one array per column, and a single value where all rows have the same."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Dialect, String, Table
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeEngine

from app.database.list_parameters import list_of
from app.database.rows.columns import Columns, is_constant
from app.database.sql import direct


class _Given(NamedTuple):
    """Rows in a statement: their columns, and the FROM they come from, with their ``place`` in the order."""

    expressions: Sequence[str]
    source: str
    #: parameters of a statement with all expressions, in order, before the source
    values: Sequence[Any]


def insert(session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
    """Insert the rows."""
    statement, values = _insert(session, table, names, columns)
    direct.execute(session, statement, values)


def insert_with_ids(session: Session, table: Table, names: Sequence[str], columns: Columns) -> list[int]:
    """Insert the rows; return their ids in order: defaults are computed after the ORDER BY."""
    statement, values = _insert(session, table, names, columns)
    found = direct.execute(session, f"{statement} ORDER BY given.place RETURNING id", values)
    return sorted(int(row[0]) for row in found)


def update(session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
    """Update the rows by the first column, the id."""
    given = _given_rows(table, names, columns, session.get_bind().dialect)
    pairs = zip(names[1:], given.expressions[1:], strict=True)
    sets = ", ".join(f"{name} = {expression}" for name, expression in pairs)
    matching = f"{table.name}.id = given.id"
    statement = f"UPDATE {table.name} SET {sets} FROM {given.source} WHERE {matching}"  # nosec B608  # names from the model
    direct.execute(session, statement, given.values)


def _insert(
    session: Session, table: Table, names: Sequence[str], columns: Columns
) -> tuple[str, Sequence[Any]]:
    given = _given_rows(table, names, columns, session.get_bind().dialect)
    named, selected = ", ".join(names), ", ".join(given.expressions)
    statement = f"INSERT INTO {table.name} ({named}) SELECT {selected} FROM {given.source}"  # nosec B608  # names from the model
    return statement, given.values


def _given_rows(table: Table, names: Sequence[str], columns: Columns, dialect: Dialect) -> _Given:
    """Return the rows; the first column is always an array."""
    expressions, arrays, marks = list[str](), list[str](), list[str]()
    single, lists = list[Any](), list[Any]()
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        mark = f"%s::{_type_name(table.c[name].type, dialect)}"
        if place and is_constant(column):
            expressions.append(mark)
            single.append(column[0])
        else:
            expressions.append(f"given.{name}")
            arrays.append(name)
            marks.append(f"{mark}[]")
            lists.append(list_of(column))
    source = f"unnest({', '.join(marks)}) WITH ORDINALITY AS given({', '.join(arrays)}, place)"
    return _Given(expressions, source, (*single, *lists))


def _type_name(column_type: TypeEngine[Any], dialect: Dialect) -> str:
    """Return the type for a column: TEXT for strings, since a cast to VARCHAR(n) would cut them silently."""
    return "TEXT" if isinstance(column_type, String) else column_type.compile(dialect)
