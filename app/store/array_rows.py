"""Rows for PostgreSQL: one array per column, and a single value where all rows have the same."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Dialect, String, Table
from sqlalchemy.types import TypeEngine

from app.parameter_lists import list_of


class GivenRows(NamedTuple):
    """Rows in a statement: their columns, and the FROM they come from, with their ``place`` in the order."""

    expressions: Sequence[str]
    source: str
    #: parameters of a statement with all expressions, in order, before the source
    values: Sequence[Any]


def given_rows(
    table: Table, names: Sequence[str], columns: Sequence[Sequence[Any]], dialect: Dialect
) -> GivenRows:
    """Return rows with these columns, as the driver expects their values; the first is always an array."""
    expressions, arrays, marks = list[str](), list[str](), list[str]()
    single, lists = list[Any](), list[Any]()
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        mark = f"%s::{_type_name(table.c[name].type, dialect)}"
        if place and column.count(column[0]) == len(column):
            expressions.append(mark)
            single.append(column[0])
        else:
            expressions.append(f"given.{name}")
            arrays.append(name)
            marks.append(f"{mark}[]")
            lists.append(list_of(column))
    source = f"unnest({', '.join(marks)}) WITH ORDINALITY AS given({', '.join(arrays)}, place)"
    return GivenRows(expressions, source, (*single, *lists))


def _type_name(column_type: TypeEngine[Any], dialect: Dialect) -> str:
    """Return the type for a column: TEXT for strings, since a cast to VARCHAR(n) would cut them silently."""
    return "TEXT" if isinstance(column_type, String) else column_type.compile(dialect)
