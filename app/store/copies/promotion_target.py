"""Server side of a promotion: limits of its columns, inserts, and comparison of what it has stored."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, DateTime, Integer, SmallInteger, String, inspect, text
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.types import TypeEngine

from app.database.dialects.choice import dialect_of
from app.domain.copied_values import ColumnKind, CopiedColumn
from app.errors import Conflict
from app.store.copies.promotion_source import KEYS, Key, Rows, SourceTable
from app.store.copies.schema import VERSION_TABLE
from app.store.copies.whole_tables import own_tables

#: longest texts of MySQL's types without a length, in bytes
_TEXT_BYTES = {mysql.TINYTEXT: 255, mysql.TEXT: 65_535, mysql.MEDIUMTEXT: 16_777_215}


class NotCopied(Conflict):
    """The server refuses a row, or returns another one than was written; the text names row and reason."""


def drop_own_tables(connection: Connection) -> None:
    """Drop all tables of this program, and its schema revision."""
    for name in [*own_tables(connection), VERSION_TABLE]:
        connection.execute(text(f"DROP TABLE IF EXISTS {name}"))


def empty_tables(connection: Connection, names: Sequence[str]) -> None:
    """Delete the rows of tables that hold few."""
    for name in names:
        connection.execute(text(f"DELETE FROM {name}"))  # nosec B608


def find_columns(connection: Connection, name: str) -> list[CopiedColumn]:
    """Return the columns of a table that are not computed by the server."""
    columns, takes_nul = inspect(connection).get_columns(name), dialect_of(connection).stores_nul
    return [
        _column(column["name"], column["type"], nullable=column["nullable"], takes_nul=takes_nul)
        for column in columns
        if not column.get("computed")
    ]


def _column(name: str, kind: TypeEngine[Any], *, nullable: bool, takes_nul: bool) -> CopiedColumn:
    if isinstance(kind, DateTime):
        return CopiedColumn(name, ColumnKind.TIME, nullable)
    if isinstance(kind, String):
        utf8_bytes = next(
            (most for column_type, most in _TEXT_BYTES.items() if type(kind) is column_type), None
        )
        return CopiedColumn(
            name,
            ColumnKind.TEXT,
            nullable,
            characters=None if utf8_bytes else kind.length,
            utf8_bytes=utf8_bytes,
            takes_nul=takes_nul,
        )
    bits = {SmallInteger: 16, BigInteger: 64}
    bit_count = next((count for base, count in bits.items() if isinstance(kind, base)), 32)
    if not isinstance(kind, Integer):
        raise NotCopied(f"column {name}: the type {kind} is not known")
    return CopiedColumn(name, ColumnKind.INTEGER, nullable, bits=bit_count)


def delete_rows(connection: Connection, table: SourceTable, keys: Sequence[Key]) -> None:
    """Delete the rows with these keys."""
    for some, marks in _slices(keys):
        key = _quote(connection, table.key)
        statement = f"DELETE FROM {table.name} WHERE {key} IN ({marks})"  # nosec B608
        connection.exec_driver_sql(statement, some)


def insert_rows(connection: Connection, table: SourceTable, rows: Rows) -> None:
    """Insert rows and compare what the server returns for them. Raises NotCopied naming the first bad row.

    After an error the transaction must be rolled back.
    """
    if not rows:
        return
    names = ", ".join(_quote(connection, name) for name in table.columns)
    marks = ", ".join(["%s"] * len(table.columns))
    statement = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # nosec B608
    connection.exec_driver_sql(statement, rows)
    row_by_key: dict[Key, tuple[Any, ...]] = {}
    key = _quote(connection, table.key)
    for keys, placeholders in _slices([row[0] for row in rows]):
        query = f"SELECT {names} FROM {table.name} WHERE {key} IN ({placeholders})"  # nosec B608
        row_by_key |= {row[0]: tuple(row) for row in connection.exec_driver_sql(query, keys)}
    for row in rows:
        if row_by_key.get(row[0]) != tuple(row):
            raise NotCopied(f"{table.name}, {table.key} {row[0]}: {_difference(table, row, row_by_key)}")


def _difference(table: SourceTable, row: tuple[Any, ...], row_by_key: dict[Key, tuple[Any, ...]]) -> str:
    stored_row = row_by_key.get(row[0])
    if stored_row is None:
        return "is not there after it was written"
    different = [name for name, old, new in zip(table.columns, row, stored_row, strict=True) if old != new]
    return f"{', '.join(different)} differs after it was written"


def find_refused_row(connection: Connection, table: SourceTable, rows: Rows) -> str:
    """Insert rows one by one, each undone on an error; return which row is refused, and why."""
    for row in rows:
        try:
            with connection.begin_nested():
                insert_rows(connection, table, [row])
        except (IntegrityError, DataError) as exc:
            reason = " ".join(str(exc.orig).split())[:300]
            return f"{table.name}, {table.key} {row[0]}: {reason}"
        except NotCopied as exc:
            return str(exc)
    return f"{table.name}: rows were refused together, but not one by one"


def count_rows(connection: Connection, table: SourceTable) -> tuple[int, int]:
    """Return the number of rows and, if the key is a number, the sum of the keys."""
    keys = "SUM(id)" if table.key == "id" else "0"
    count, keys = connection.exec_driver_sql(f"SELECT COUNT(*), {keys} FROM {table.name}").one()  # nosec B608
    return int(count), int(keys or 0)


def continue_ids(connection: Connection, last_ids: dict[SourceTable, int]) -> None:
    """Have tables continue their ids after the last one given, even if that row is gone."""
    for table, last in last_ids.items():
        dialect_of(connection).continue_ids(connection, table.name, last)


def _quote(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)


def _slices(keys: Sequence[Key]) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield some keys at a time, with as many marks for them."""
    for start in range(0, len(keys), KEYS):
        some = tuple(keys[start : start + KEYS])
        yield some, ", ".join(["%s"] * len(some))
