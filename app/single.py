"""Transactions of one statement, for what loops ask and write every second, mostly in vain.

On SQLite the statement goes to the driver without a session, which would take ten times as long. Servers get
it through a session. Statements are made once, with ``bindparam`` for what changes; their parameters and
columns are texts and numbers, which need no conversion.
"""

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, cast

from sqlalchemy import Select, Update
from sqlalchemy.exc import DBAPIError

from app import statement_times
from app.db import (
    BUSY_TIMEOUT_MS,
    bound_engine,
    is_transient,
    on_sqlite,
    read_scope,
    transact,
)
from app.promoted import check_mark
from app.write_queue import QueuedConnection
from app.written import DIALECT, written

Values = Mapping[str, Any]


def read(statement: Select[Any], values: Values) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement."""
    if not on_sqlite():
        with read_scope() as session:
            return session.connection().execute(statement, values).all()
    text = written(statement)
    with _connection(text.sql) as connection:
        check_mark(connection)
        return connection.execute(text.sql, text.values(values)).fetchall()


def write(statement: Update, values: Values) -> int:
    """Execute a statement and commit; return how many rows it changed. Waits for other writers."""
    if on_sqlite():
        try:
            return _write(statement, values)
        except DBAPIError as exc:
            if not is_transient(exc):
                raise
    return transact(lambda session: session.connection().execute(statement, values).rowcount)


def _write(statement: Update, values: Values) -> int:
    text = written(statement)
    with _connection(text.sql) as connection:
        connection.begin_immediate(BUSY_TIMEOUT_MS)
        check_mark(connection)
        changed = connection.execute(text.sql, text.values(values)).rowcount
        connection.commit()
        return changed


@contextmanager
def _connection(sql: str) -> Iterator[QueuedConnection]:
    """Yield a connection of the pool, which rolls back what is not committed; raise SQLAlchemy's errors."""
    started = time.monotonic()
    try:  # the pool opens the file without SQLAlchemy's errors
        with closing(bound_engine().raw_connection()) as pooled:
            yield cast("QueuedConnection", pooled.driver_connection)
    except sqlite3.Error as exc:
        raise DBAPIError.instance(sql, None, exc, sqlite3.Error, dialect=DIALECT) from exc
    statement_times.observe(time.monotonic() - started, sql)
