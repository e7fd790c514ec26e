"""Helpers of the tests of promotion, for all that need them."""

import itertools
from datetime import datetime

import pytest
from sqlalchemy import Connection, DateTime, Engine, Integer, MetaData, Table

from app.store.copies.promotion_source import NOT_COPIED

on_servers = pytest.mark.databases("mariadb", "postgresql")


def reflected(engine: Engine) -> list[Table]:
    """Return the tables of the program as the database has them."""
    metadata = MetaData()
    metadata.reflect(engine)
    return [table for table in metadata.sorted_tables if table.name not in NOT_COPIED]


def fill(engine: Engine, rows: int = 3) -> None:
    """Insert rows with distinct values, NULLs and long ids into every table."""
    numbers = itertools.count(1)
    with engine.begin() as connection:
        for table in reflected(engine):
            connection.execute(table.delete())
            for row in range(rows):
                connection.execute(table.insert().values(_values(table, next(numbers), nulls=row == 0)))


def _values(table: Table, number: int, *, nulls: bool) -> dict[str, object]:
    values: dict[str, object] = {}
    for column in table.columns:
        if column.computed is not None or (nulls and column.nullable):
            continue
        if column.name == "key_fingerprint":
            values[column.name] = ""  # a node that runs with another key would be refused
            continue
        if isinstance(column.type, DateTime):
            # a local time that exists twice: it must come through without a conversion
            values[column.name] = datetime(2025, 10, 26, 2, number // 60 % 60, number % 60)
        elif isinstance(column.type, Integer):
            values[column.name] = number
        else:
            length = getattr(column.type, "length", None) or 100
            values[column.name] = f"{number} ünï 🕰 'q' \"d\" %s \\ \n"[:length]
    if "id" in values and number % 3 == 0:
        values["id"] = number + 100_000
    return values


def content(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows, of the columns that are not computed, in the order of their keys."""
    with engine.connect() as connection:
        return {table.name: _rows(connection, table) for table in reflected(engine)}


def _rows(connection: Connection, table: Table) -> list[tuple[object, ...]]:
    columns = [column for column in table.columns if column.computed is None]
    names = sorted(column.name for column in columns)
    rows = connection.execute(table.select()).mappings().all()
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)
