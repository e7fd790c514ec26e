"""Single-statement transactions for the polling loops.

The statement goes to the driver without a session, which would take several times as long. Statements are
made once, with ``bindparam`` for what changes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, Select, Update
from sqlalchemy.exc import DBAPIError

from app.database.connections.sqlite import BUSY_TIMEOUT_MS
from app.database.connections.sqlite_write_lock import QueuedConnection
from app.database.driver import Values, count_of, rows_of, run
from app.database.engine import bound_engine, is_transient, lost_connection, transact
from app.database.promotion_mark import check_mark
from app.database.sql.compiled import compile_statement

Parameters = Mapping[str, Any]


def read(statement: Select[Any], parameters: Parameters) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement."""
    try:
        return _read(bound_engine(), statement, parameters)
    except DBAPIError as exc:  # The server was restarted, or the database has moved.
        if not is_transient(exc) and not lost_connection(exc):
            raise
    return _read(bound_engine(), statement, parameters)


def _read(engine: Engine, statement: Select[Any], parameters: Parameters) -> Sequence[Sequence[Any]]:
    text = compile_statement(statement, engine.dialect)
    with engine.connect() as connection:
        return text.to_python(run(connection, text.sql, text.values(parameters), _read_rows))


def _read_rows(cursor: Any, sql: str, values: Values) -> Sequence[Sequence[Any]]:
    connection = cursor.connection
    if isinstance(connection, QueuedConnection):
        check_mark(connection)
    rows = rows_of(cursor, sql, values)
    connection.rollback()  # PyMySQL does not notice that a SELECT has begun a transaction
    return rows


def write(statement: Update, parameters: Parameters) -> int:
    """Execute a statement and commit; return how many rows it changed. Waits for other writers.

    It is repeated if the connection is lost, even at the commit: the second time must change nothing else.
    """
    try:
        return _write(bound_engine(), statement, parameters)
    except DBAPIError as exc:
        if not is_transient(exc) and not lost_connection(exc):
            raise
    return transact(lambda session: session.connection().execute(statement, parameters).rowcount)


def _write(engine: Engine, statement: Update, parameters: Parameters) -> int:
    text = compile_statement(statement, engine.dialect)
    with engine.connect() as connection:
        return run(connection, text.sql, text.values(parameters), _change_rows)


def _change_rows(cursor: Any, sql: str, values: Values) -> int:
    """Execute and commit a statement; the pool rolls back what is not committed."""
    connection = cursor.connection
    if isinstance(connection, QueuedConnection):
        connection.begin_immediate(BUSY_TIMEOUT_MS)
        check_mark(connection)
    count = count_of(cursor, sql, values)
    connection.commit()
    return count
