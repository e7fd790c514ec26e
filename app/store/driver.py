"""Statements handed to SQLite's driver directly, for those that every trigger and callback needs.

SQLAlchemy takes ten times as long for such a statement as SQLite does. Its listeners are called as always.
Servers get the same statements through SQLAlchemy.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Delete, Select
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningDelete

from app.store.among import WANTED

Statement = Select[Any] | Delete | ReturningDelete[Any]
_DIALECT = SQLiteDialect()


def is_sqlite(session: Session) -> bool:
    """Whether the database is SQLite."""
    return session.get_bind().dialect.name == "sqlite"


def read_among(session: Session, statement: Statement, values: Collection[int]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement made once, whose only parameter is ``among``.

    Its columns are texts and numbers, which need no conversion.
    """
    session.flush()
    text = _written(statement)
    return _run(session, text, lambda raw: raw.execute(text, (json.dumps(list(values)),)).fetchall())


def execute_many(session: Session, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute an INSERT or UPDATE once for each row of parameters."""
    _run(session, sql, lambda raw: raw.executemany(sql, rows).fetchall())


@cache
def _written(statement: Statement) -> str:
    compiled = statement.compile(dialect=_DIALECT)
    assert compiled.params.keys() == {WANTED}, compiled.string
    for column in () if isinstance(statement, Delete) else statement.exported_columns:
        assert column.type.dialect_impl(_DIALECT).result_processor(_DIALECT, None) is None, column
    return compiled.string


def _run(
    session: Session, sql: str, work: Callable[[sqlite3.Connection], list[tuple[Any, ...]]]
) -> list[tuple[Any, ...]]:
    connection = session.connection()
    raw, listeners = connection.connection.driver_connection, connection.dispatch
    assert isinstance(raw, sqlite3.Connection)
    listeners.before_cursor_execute(connection, None, sql, None, None, False)
    try:
        rows = work(raw)
    except sqlite3.Error as exc:
        raise DBAPIError.instance(sql, None, exc, sqlite3.Error, dialect=connection.dialect) from exc
    listeners.after_cursor_execute(connection, None, sql, None, None, False)
    return rows
