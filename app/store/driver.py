"""Statements handed to the driver directly, for those that every trigger and callback needs.

SQLAlchemy takes up to ten times as long for such a statement as the driver does. Its listeners are called as
always, but with None for the parameters of many rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy.orm import Session

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


def execute(
    session: Session, sql: str, values: Sequence[Any] | Mapping[str, Any] | None
) -> Sequence[Sequence[Any]]:
    """Execute a statement; return its rows. None: its text has all values, and no marks."""

    def rows_of(cursor: Any) -> Sequence[Sequence[Any]]:
        _execute(cursor, sql, values)
        rows: Sequence[Sequence[Any]] = cursor.fetchall() if cursor.description else ()
        return rows

    return _run(session, sql, values, rows_of)


def change_text(session: Session, sql: str, values: Sequence[Any] | Mapping[str, Any] | None) -> int:
    """Execute an INSERT, UPDATE or DELETE; return how many rows it changed."""

    def count_of(cursor: Any) -> int:
        _execute(cursor, sql, values)
        return int(cursor.rowcount)

    return _run(session, sql, values, count_of)


def execute_many(session: Session, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute an INSERT or UPDATE once for each row of parameters; for SQLite only."""
    _run(session, sql, None, lambda cursor: cursor.executemany(sql, rows))


def _execute(cursor: Any, sql: str, values: Sequence[Any] | Mapping[str, Any] | None) -> None:
    if values is None:
        cursor.execute(sql)
    else:
        cursor.execute(sql, values)


def _run(session: Session, sql: str, values: Any, work: Callable[[Any], T]) -> T:
    """Let ``work`` execute a statement."""
    connection = session.connection()
    raw, listeners, dialect = connection.connection.driver_connection, connection.dispatch, connection.dialect
    assert raw is not None
    listeners.before_cursor_execute(connection, None, sql, values, None, False)
    try:
        found = work(raw.cursor())
    except dialect.loaded_dbapi.Error as exc:
        error = error_of(exc, sql, raw, dialect)
        if error.connection_invalidated:
            connection.invalidate(exc)
        raise error from exc
    listeners.after_cursor_execute(connection, None, sql, values, None, False)
    return found
