"""Transactions of one statement, for what loops ask and write every second, mostly in vain.

The statement goes to the driver without a session, which would take several times as long, and on a server
without BEGIN, COMMIT and ROLLBACK, which would be round trips of their own. Statements are made once, with
``bindparam`` for what changes.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import Engine, Select, Update
from sqlalchemy.exc import DBAPIError

from app import sqlite_pool, statement_times
from app.db import is_transient, single_engine, transact
from app.promoted import check_mark
from app.write_queue import QueuedConnection
from app.written import error_of, written

Values = Mapping[str, Any]


def read(statement: Select[Any], values: Values) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement."""
    try:
        return _read(single_engine(), statement, values)
    except DBAPIError as exc:  # as after a restart of the server, or a move to one
        if not is_transient(exc) and not exc.connection_invalidated:
            raise
    return _read(single_engine(), statement, values)


def _read(engine: Engine, statement: Select[Any], values: Values) -> Sequence[Sequence[Any]]:
    text = written(statement, engine.dialect)
    with _connection(engine, text.sql) as connection:
        if isinstance(connection, QueuedConnection):
            check_mark(connection)
        cursor = connection.cursor()
        cursor.execute(text.sql, text.values(values))
        return text.converted(cursor.fetchall())


def write(statement: Update, values: Values) -> int:
    """Execute a statement and commit; return how many rows it changed. Waits for other writers.

    It is repeated if the connection is lost, even at the commit: the second time must change nothing else.
    """
    try:
        return _write(single_engine(), statement, values)
    except DBAPIError as exc:
        if not is_transient(exc) and not exc.connection_invalidated:
            raise
    return transact(lambda session: session.connection().execute(statement, values).rowcount)


def _write(engine: Engine, statement: Update, values: Values) -> int:
    text = written(statement, engine.dialect)
    with _connection(engine, text.sql) as connection:
        if isinstance(connection, QueuedConnection):
            connection.begin_immediate(sqlite_pool.BUSY_TIMEOUT_MS)
            check_mark(connection)
        cursor = connection.cursor()
        cursor.execute(text.sql, text.values(values))
        if isinstance(connection, QueuedConnection):  # a server has committed it
            connection.commit()
        return int(cursor.rowcount)


@contextmanager
def _connection(engine: Engine, sql: str) -> Iterator[Any]:
    """Yield a connection; raise SQLAlchemy's errors. SQLite's pool rolls back what is not committed."""
    started = time.monotonic()
    connection: Any = None
    try:  # the pool opens connections without SQLAlchemy's errors
        with closing(engine.raw_connection()) as pooled:
            connection = pooled.driver_connection
            try:
                yield connection
            except engine.dialect.loaded_dbapi.Error as exc:
                if engine.dialect.is_disconnect(exc, connection, None):
                    pooled.invalidate(exc)
                raise
    except engine.dialect.loaded_dbapi.Error as exc:
        raise error_of(exc, sql, connection, engine.dialect) from exc
    finally:
        if connection is not None:
            statement_times.observe(time.monotonic() - started, sql)
