"""Answer deadline of PostgreSQL: a statement that waits too long for the server ends with its connection.

The host of a server that hangs still acknowledges what it receives, so neither keepalives nor
``tcp_user_timeout`` end the wait. PyMySQL has time-outs of its own.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from app.compat import answer_timeout

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import PQGen

T = TypeVar("T")

#: psycopg's own: how often a wait looks for Ctrl-C, in seconds
INTERVAL_S = 0.1


def connect(*args: Any, answer_s: float, **parameters: Any) -> "Connection[Any]":
    """Open a connection of psycopg whose commands get an answer within ``answer_s``, or end."""
    connection: Connection[Any] = _connection_class().connect(*args, **parameters)
    connection.answer_s = answer_s  # type: ignore[attr-defined]
    return connection


@cache
def _connection_class() -> Any:
    from psycopg import Connection, errors  # here: other databases need no psycopg

    class BoundedConnection(Connection[Any]):
        """Connection that is closed if a command gets no answer in time."""

        answer_s: float | None = None

        def wait(self, gen: "PQGen[T]", interval: float = INTERVAL_S, timeout: float | None = None) -> T:
            if timeout is not None or self.answer_s is None:
                return super().wait(gen, interval, timeout)
            try:
                return super().wait(gen, interval, self.answer_s)
            except answer_timeout(errors) as exc:
                self.pgconn.finish()  # a late answer must not be taken for that of the next command
                reason = f"no answer within {self.answer_s:g} s (XXL_JOB_DATABASE_ANSWER_S)"
                raise errors.OperationalError(reason) from exc

    return BoundedConnection
