"""Statements handed to the driver directly, for those that every trigger and callback needs.

SQLAlchemy takes up to ten times as long for such a statement as the driver does. Its listeners are called as
always, but with None for the parameters of many rows; those of errors are not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from app import statement_times
from app.written import Statement, error_of, written

T = TypeVar("T")


def read(session: Session, statement: Statement, parameters: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement made once; the list of ``among`` is the parameter WANTED."""
    session.flush()
    text = written(statement, session.get_bind().dialect)
    return text.converted(execute(session, text.sql, text.values(parameters)))


def change(session: Session, statement: Statement, parameters: Mapping[str, Any]) -> int:
    """Execute an UPDATE or DELETE made once; return how many rows it changed."""
    text = written(statement, session.get_bind().dialect)
    return change_text(session, text.sql, text.values(parameters))


def execute(session: Session, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Execute a statement; return its rows."""

    def rows_of(cursor: Any) -> Sequence[Sequence[Any]]:
        cursor.execute(sql, values)
        return _rows_of(cursor)

    return _run(session, sql, values, rows_of)


def execute_literal(session: Session, sql: str, shown: str) -> Sequence[Sequence[Any]]:
    """Execute a statement whose text has all values; return its rows. ``shown``: for logs and errors."""

    def rows_of(cursor: Any) -> Sequence[Sequence[Any]]:
        cursor.execute(sql)
        return _rows_of(cursor)

    return _run(session, shown, None, rows_of)


def _rows_of(cursor: Any) -> Sequence[Sequence[Any]]:
    rows: Sequence[Sequence[Any]] = cursor.fetchall() if cursor.description else ()
    return rows


def change_text(session: Session, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> int:
    """Execute an INSERT, UPDATE or DELETE; return how many rows it changed."""

    def count_of(cursor: Any) -> int:
        cursor.execute(sql, values)
        return int(cursor.rowcount)

    return _run(session, sql, values, count_of)


def execute_many(session: Session, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute an INSERT or UPDATE once for each row of parameters; for SQLite only."""
    _run(session, sql, None, lambda cursor: cursor.executemany(sql, rows))


def _run(session: Session, sql: str, values: Any, work: Callable[[Any], T]) -> T:
    """Execute a statement; listeners and errors get ``sql`` and ``values``, None for those of many rows."""
    connection = session.connection()
    raw, listeners, dialect = connection.connection.driver_connection, connection.dispatch, connection.dialect
    assert raw is not None
    listeners.before_cursor_execute(connection, None, sql, values, None, False)
    try:
        found = work(raw.cursor())
    except dialect.loaded_dbapi.Error as exc:
        statement_times.observe_started(connection, sql)
        error = error_of(exc, sql, raw, dialect)
        if error.connection_invalidated:
            connection.invalidate(exc)
        raise error from exc
    listeners.after_cursor_execute(connection, None, sql, values, None, False)
    return found
