"""Statements executed by the driver, with SQLAlchemy's events and errors.

SQLAlchemy takes up to ten times as long for a small statement as the driver does. Its listeners are called as
always, so that application performance monitoring (Sentry, OpenTelemetry) traces these statements too.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.engine import ExecutionContext
from sqlalchemy.engine.interfaces import DBAPICursor

from app.compat import raise_driver_error

T = TypeVar("T")
#: parameters of a statement, or those of each of its executions
Values = Sequence[Any] | Mapping[str, Any]
#: executes a statement by a cursor of the driver, with these parameters
Work = Callable[[Any, str, Values], T]


class DriverContext(ExecutionContext):
    """Execution context of one statement; listeners keep attributes of their own on it."""

    compiled = None
    invoked_statement = None
    isinsert = isupdate = no_parameters = False

    def __init__(
        self, connection: Connection, cursor: DBAPICursor, statement: str, values: Values, *, many: bool
    ) -> None:
        self.connection = self.root_connection = connection
        self.cursor, self.statement = cursor, statement
        self.parameters = cast("Any", values)
        self.executemany = many
        self.dialect, self.engine = connection.dialect, connection.engine
        self.execution_options = connection.get_execution_options()

    def handle_dbapi_exception(self, e: BaseException) -> None:
        """Do nothing: the connection handles the errors of the driver."""


def run(connection: Connection, statement: str, values: Values, work: Work[T], *, many: bool = False) -> T:
    """Return what ``work`` does with a cursor; ``many``: the statement is executed for each of the values.

    ``statement`` and ``values`` are what listeners and errors get, and may replace. Raises SQLAlchemy's
    errors.
    """
    cursor = _cursor_of(connection, statement)
    context = DriverContext(connection, cursor, statement, values, many=many)
    for listener in connection.dispatch.before_cursor_execute:
        statement, values = listener(connection, cursor, statement, values, context, many)
    try:
        result = work(cursor, statement, values)
        connection.dispatch.after_cursor_execute(connection, cursor, statement, values, context, many)
    except BaseException as exc:
        raise_driver_error(connection, exc, statement, values, cursor, context)
    return result


def _cursor_of(connection: Connection, statement: str) -> DBAPICursor:
    raw = connection.connection.driver_connection
    assert raw is not None
    try:
        cursor: DBAPICursor = raw.cursor()
    except connection.dialect.loaded_dbapi.Error as exc:  # The connection is closed.
        raise_driver_error(connection, exc, statement)
    return cursor


def rows_of(cursor: Any, statement: str, values: Values) -> Sequence[Sequence[Any]]:
    """Execute a statement; return its rows."""
    cursor.execute(statement, values)
    return fetch_rows(cursor)


def fetch_rows(cursor: Any) -> Sequence[Sequence[Any]]:
    """Return the rows of the statement that a cursor has executed."""
    rows: Sequence[Sequence[Any]] = cursor.fetchall() if cursor.description else ()
    return rows


def count_of(cursor: Any, statement: str, values: Values) -> int:
    """Execute a statement; return how many rows it changed."""
    cursor.execute(statement, values)
    return int(cursor.rowcount)
