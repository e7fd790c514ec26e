"""Server connections: liveness check and reset without extra round trips.

SQLAlchemy's pool asks the server whether a connection still works before each use, and sends a ROLLBACK after
each. Both are round trips, as many as a small transaction has statements. Here a connection that worked a
moment ago is used without asking, unless its socket shows that the server has ended it; and only a
transaction that is still open is rolled back. The connection used last is used first, so that few are busy,
whose prepared statements and caches are warm.
"""

import select
import time
from abc import ABC, abstractmethod
from typing import Any
from weakref import WeakSet

from sqlalchemy import Dialect, Engine, event
from sqlalchemy.exc import InvalidatePoolError

#: options of ``create_engine``; ``ServerConnections`` completes them
OPTIONS: dict[str, Any] = {
    "isolation_level": "READ COMMITTED",
    # A connection is replaced after these seconds.
    "pool_recycle": 1_800,
    "pool_use_lifo": True,
    "pool_reset_on_return": None,
}
#: seconds to wait for a connection
CONNECT_S = 5
#: a connection that was not used for so long, in seconds, is checked before it is used
CHECK_AFTER_S = 1.0
#: longest wait for a lock, in seconds, the default of MySQL; it ends before the wait for an answer does
LOCK_WAIT_S = 50.0
_LOCK_SHARE = 0.8
#: key of the time at which a connection was used last, in what the pool keeps of it
_USED_AT = "used at"


class ServerConnections(ABC):
    """Connections of an engine to a server, with what differs between drivers in the methods."""

    def __init__(self, dialect: Dialect, answer_s: float) -> None:
        self.dialect = dialect
        self.answer_s = answer_s
        self.lock_wait_s = min(LOCK_WAIT_S, answer_s * _LOCK_SHARE)
        #: when a connection was found to be lost: those used before may be lost too
        self._lost_at = 0.0

    @abstractmethod
    def set_up(self, connection: Any, record: Any) -> None:
        """Set up a new connection of the driver, and end each wait for a lock.

        A transaction that an operator left open must not stop a loop without a word. Raises NotConfigured for
        an unsuitable server, before SQLAlchemy, which parses its version, sees it.
        """

    @abstractmethod
    def readable(self, connection: Any) -> Any:
        """Return what ``poll`` takes to see whether the server has sent something; None: it is closed."""

    @abstractmethod
    def may_have_transaction(self, connection: Any) -> bool:
        """Whether a transaction may be open, by what the driver knows without a query."""

    def watch(self, engine: Engine) -> None:
        """Have the engine's pool call the methods."""
        event.listen(engine, "connect", self.set_up, insert=True)
        event.listen(engine, "checkout", self.check)
        event.listen(engine, "reset", self.end)
        event.listen(engine, "invalidate", self.note_lost)

    def check(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Check a connection that may be lost; if it is, all are replaced."""
        used_at = record.info.get(_USED_AT)
        if used_at is None:  # The connection was just opened.
            return
        if used_at <= self._lost_at:  # A check would wait for a server that hangs.
            raise InvalidatePoolError
        if time.monotonic() - used_at < CHECK_AFTER_S and self._is_quiet(connection):
            return
        try:
            self.dialect.do_ping(connection)
        except self.dialect.loaded_dbapi.Error as exc:
            raise InvalidatePoolError from exc

    def _is_quiet(self, connection: Any) -> bool:
        """Whether a connection is open, and the server has sent nothing unasked, such as its end."""
        readable = self.readable(connection)
        if readable is None:
            return False
        news = select.poll()
        news.register(readable, select.POLLIN)
        return not news.poll(0)

    def end(self, connection: Any, record: Any, _state: Any) -> None:
        """Roll back what is still open.

        If that fails, as on a node of Galera without a quorum, the pool opens another connection, and what
        had failed before has been reported.
        """
        try:
            if self.may_have_transaction(connection):
                self.dialect.do_rollback(connection)
        except self.dialect.loaded_dbapi.Error as exc:
            if record is None:
                raise
            record.invalidate(exc)
            return
        if record is not None:  # The connection stays in the pool.
            record.info[_USED_AT] = time.monotonic()

    def note_lost(self, _connection: Any, _record: Any, _error: Any) -> None:
        """Trust no connection that was used before."""
        self._lost_at = time.monotonic()


_engines: WeakSet[Engine] = WeakSet()


def watch(engine: Engine, kind: type[ServerConnections], answer_s: float) -> None:
    """Set up, check and end the connections of an engine by a new ``kind``; does nothing the second time."""
    if engine not in _engines:
        _engines.add(engine)
        kind(engine.dialect, answer_s).watch(engine)
