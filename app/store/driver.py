"""Statements handed to SQLite's driver directly, for those that every trigger and callback needs.

SQLAlchemy takes ten times as long for such a statement as SQLite does. Its listeners are called as always.
Servers get the same statements through SQLAlchemy.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.written import Statement, written


def is_sqlite(session: Session) -> bool:
    """Whether the database is SQLite."""
    return session.get_bind().dialect.name == "sqlite"


def read(session: Session, statement: Statement, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement made once; the list of ``among`` is the parameter WANTED.

    Its parameters are texts and numbers, which need no conversion.
    """
    session.flush()
    text = written(statement)
    given = [json.dumps(value) if isinstance(value, list) else value for value in text.values(parameters)]
    rows = execute(session, text.sql, given)
    for index, convert in text.conversions:
        rows = [(*row[:index], convert(row[index]), *row[index + 1 :]) for row in rows]
    return rows


def execute(session: Session, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Execute a statement; return its rows."""
    return _run(session, sql, tuple(values), lambda raw: raw.execute(sql, values).fetchall())


def execute_many(session: Session, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute an INSERT or UPDATE once for each row of parameters."""
    _run(session, sql, None, lambda raw: raw.executemany(sql, rows).fetchall())


def _run(
    session: Session,
    sql: str,
    values: tuple[Any, ...] | None,
    work: Callable[[sqlite3.Connection], list[tuple[Any, ...]]],
) -> list[tuple[Any, ...]]:
    """Execute a statement; its listeners get ``values``, None for those of many rows."""
    connection = session.connection()
    raw, listeners = connection.connection.driver_connection, connection.dispatch
    assert isinstance(raw, sqlite3.Connection)
    listeners.before_cursor_execute(connection, None, sql, values, None, False)
    try:
        rows = work(raw)
    except sqlite3.Error as exc:
        raise DBAPIError.instance(sql, None, exc, sqlite3.Error, dialect=connection.dialect) from exc
    listeners.after_cursor_execute(connection, None, sql, values, None, False)
    return rows
