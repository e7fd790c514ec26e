"""Answer deadline of PostgreSQL: closes a connection whose statement waits too long for the server.

The host of a server that hangs still acknowledges what it receives, so neither keepalives nor
``tcp_user_timeout`` end the wait. A server that only takes long is asked to stop: it would go on with the
statement, and hold its locks. PyMySQL has time-outs of its own.
"""

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from app.compat import answer_timeout

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import PQGen

T = TypeVar("T")

#: psycopg's own: how often a wait looks for Ctrl-C, in seconds
INTERVAL_S = 0.1
#: longest wait for the answer to a request to stop, which a server that hangs does not give
CANCEL_S = 1.0


def connect(*args: Any, answer_s: float, **parameters: Any) -> "Connection[Any]":
    """Open a connection of psycopg whose commands get an answer within ``answer_s``, or end."""
    connection: Connection[Any] = _connection_class().connect(*args, **parameters)
    connection.answer_s = answer_s  # type: ignore[attr-defined]
    return connection


def is_deadline(error: BaseException | None) -> bool:
    """Whether an error of a driver comes from a wait for an answer that took too long.

    mysqlclient does not show that: it reports a lost connection.
    """
    while error is not None and not isinstance(error, TimeoutError):
        error = error.__cause__ or error.__context__
    return error is not None


@cache
def _connection_class() -> Any:
    from psycopg import Connection, capabilities, errors  # Other databases need no psycopg.

    class BoundedConnection(Connection[Any]):
        """Connection that is closed if a command gets no answer in time."""

        answer_s: float | None = None

        def wait(self, gen: "PQGen[T]", interval: float = INTERVAL_S, timeout: float | None = None) -> T:
            if timeout is not None or self.answer_s is None:
                return super().wait(gen, interval, timeout)
            try:
                return super().wait(gen, interval, self.answer_s)
            except answer_timeout(errors) as exc:
                self._end()
                reason = f"no answer within {self.answer_s:g} s (XXL_JOB_DATABASE_ANSWER_S)"
                raise errors.OperationalError(reason) from TimeoutError(str(exc))

        def _end(self) -> None:
            """Ask the server to stop, then close: a late answer must not be taken for the next one."""
            if capabilities.has_cancel_safe():  # A libpq before 17 would wait for the answer for ever.
                with suppress(errors.Error, OSError):
                    self.cancel_safe(timeout=CANCEL_S)
            self.pgconn.finish()

    return BoundedConnection
