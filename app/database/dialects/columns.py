"""Columns of rows: lists of values per column, which statements on many rows are made from."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Dialect, Table

#: the values of each column, as the driver expects them
Columns = Sequence[Sequence[Any]]


def columns_of(
    table: Table, names: Sequence[str], rows: Sequence[Mapping[str, Any]], dialect: Dialect
) -> list[list[Any]]:
    """Return the values of each column as the driver expects them."""
    columns: list[list[Any]] = []
    for name in names:
        values = list(map(itemgetter(name), rows))
        process = table.c[name].type.dialect_impl(dialect).bind_processor(dialect)
        if process is not None and is_constant(values):  # An example is the time of a claim.
            values = [process(values[0])] * len(values)
        elif process is not None:
            values = list(map(process, values))
        columns.append(values)
    return columns


def is_constant(column: Sequence[Any]) -> bool:
    """Whether all rows have the same value."""
    return column.count(column[0]) == len(column)
