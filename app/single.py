"""Transactions of one statement, for what loops ask and write every second, mostly in vain.

The statement goes to the driver without a session, which would take several times as long, and on PostgreSQL
without a transaction, which would take two round trips more. Statements are made once, with ``bindparam`` for
what changes.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import Select, Update
from sqlalchemy.exc import DBAPIError

from app import statement_times
from app.db import BUSY_TIMEOUT_MS, bound_engine, is_transient, transact
from app.promoted import check_mark
from app.write_queue import QueuedConnection
from app.written import Written, error_of, written

Values = Mapping[str, Any]


def read(statement: Select[Any], values: Values) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement."""
    text = written(statement, bound_engine().dialect)
    try:
        return _read(text, values)
    except DBAPIError as exc:
        if not exc.connection_invalidated:  # as after a restart of the server
            raise
    return _read(text, values)


def _read(text: Written, values: Values) -> Sequence[Sequence[Any]]:
    with _connection(text.sql) as connection:
        if isinstance(connection, QueuedConnection):
            check_mark(connection)
        cursor = connection.cursor()
        cursor.execute(text.sql, text.values(values))
        rows = text.converted(cursor.fetchall())
        connection.rollback()  # MySQL has begun a transaction, but does not say so after a SELECT
        return rows


def write(statement: Update, values: Values) -> int:
    """Execute a statement and commit; return how many rows it changed. Waits for other writers.

    It is repeated if the connection is lost, even at the commit: the second time must change nothing else.
    """
    try:
        return _write(written(statement, bound_engine().dialect), values)
    except DBAPIError as exc:
        if not is_transient(exc) and not exc.connection_invalidated:
            raise
    return transact(lambda session: session.connection().execute(statement, values).rowcount)


def _write(text: Written, values: Values) -> int:
    with _connection(text.sql) as connection:
        if isinstance(connection, QueuedConnection):
            connection.begin_immediate(BUSY_TIMEOUT_MS)
            check_mark(connection)
        cursor = connection.cursor()
        cursor.execute(text.sql, text.values(values))
        connection.commit()
        return int(cursor.rowcount)


@contextmanager
def _connection(sql: str) -> Iterator[Any]:
    """Yield a connection of the pool, which rolls back what is not committed; raise SQLAlchemy's errors."""
    engine, started = bound_engine(), time.monotonic()
    connection: Any = None
    try:  # the pool opens connections without SQLAlchemy's errors
        with closing(engine.raw_connection()) as pooled:
            connection = pooled.driver_connection
            try:
                with _without_begin(connection, engine.dialect.name):
                    yield connection
            except engine.dialect.loaded_dbapi.Error as exc:
                if engine.dialect.is_disconnect(exc, connection, None):
                    pooled.invalidate(exc)
                else:
                    pooled.rollback()  # after an error MySQL does not say whether a transaction is open
                raise
    except engine.dialect.loaded_dbapi.Error as exc:
        raise error_of(exc, sql, connection, engine.dialect) from exc
    statement_times.observe(time.monotonic() - started, sql)


@contextmanager
def _without_begin(connection: Any, dialect_name: str) -> Iterator[None]:
    """Let psycopg begin no transaction: a statement alone is one."""
    if dialect_name != "postgresql":
        yield
        return
    connection.autocommit = True
    try:
        yield
    finally:
        if not connection.closed:
            connection.autocommit = False
