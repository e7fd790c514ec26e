"""Poolers in front of PostgreSQL, such as PgBouncer: detection of shared server processes.

In the session mode of a pooler a connection has a server process of its own. In its transaction mode each
transaction may be executed by another one: settings of a session and advisory locks stay behind, for
whomever comes next, and so do prepared statements, unless the pooler follows them.
"""

import secrets
from collections.abc import Callable
from contextlib import closing
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, text

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

#: attempts to see two connections in one server process; on an idle pooler the first succeeds
ROUNDS = 5
_PID = b"SELECT pg_backend_pid()"


class Pooling(Enum):
    """What connections have in common."""

    #: nothing: no pooler, or its session mode
    NONE = auto()
    #: server processes; the pooler keeps the prepared statements of connections apart
    SHARED = auto()
    #: server processes with all that was prepared in them
    MIXED = auto()


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler is between: it announces a process number that is not the server's."""
    raw: Any = connection.connection.driver_connection
    return bool(raw.info.backend_pid != connection.scalar(text("SELECT pg_backend_pid()")))


def find_pooling(engine: Engine) -> Pooling:
    """Return what connections through a pooler share; raises errors of psycopg.

    One connection prepares a statement under a random name, which no other program executes by mistake. Then
    a transaction of a second one takes the server process that the first has used last.
    """
    name = f"xxl_job_probe_{secrets.token_hex(8)}".encode()
    with closing(engine.raw_connection()) as connection:
        first: Any = connection.driver_connection
        if not _is_success(_execute(first, lambda: first.pgconn.send_prepare(name, _PID))):
            return Pooling.MIXED
        rounds = (_compare(engine, first, name) for _ in range(ROUNDS))
        return next((pooling for pooling in rounds if pooling is not None), Pooling.NONE)


def _compare(engine: Engine, first: Any, name: bytes) -> Pooling | None:
    """Return what one attempt shows; None: nothing."""
    process = _execute_prepared(first, name)
    if process is None:
        return Pooling.MIXED
    connection = engine.raw_connection()
    second: Any = connection.driver_connection
    try:
        _execute(second, lambda: second.pgconn.send_query(b"BEGIN"))
        if _execute(second, lambda: second.pgconn.send_query(_PID)).get_value(0, 0) == process:
            return Pooling.SHARED if _execute_prepared(second, name) is None else Pooling.MIXED
        later = _execute_prepared(first, name)
    finally:
        connection.invalidate()  # The pooler ends its process, with its prepared statements.
    if later is None:
        return Pooling.MIXED
    return Pooling.SHARED if later != process else None


def _execute_prepared(connection: Any, name: bytes) -> bytes | None:
    """Return the number of the process that executes the prepared statement; None: it is unknown there."""
    try:
        result = _execute(connection, lambda: connection.pgconn.send_query_prepared(name, None))
    except connection.OperationalError:
        if not connection.broken:
            raise
        return None  # The pooler ends a connection that names a statement of another.
    return result.get_value(0, 0) if _is_success(result) else None


def _execute(connection: Any, send: Callable[[], None]) -> "PGresult":
    """Return the last result of a command of libpq."""
    from psycopg import generators  # Other databases need no psycopg.

    send()
    results: list[PGresult] = connection.wait(generators.execute(connection.pgconn))
    return results[-1]


def _is_success(result: "PGresult") -> bool:
    from psycopg.pq import ExecStatus

    return result.status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
