"""One thread that writes one SQLite file: what arrives while a commit is under way goes into the next one, together.

So a hundred callers that need their row on disk share one ``fsync``; a single caller waits for nobody.
"""

import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from executor_client.errors import JournalUnavailable

T = TypeVar("T")
Statement = Callable[[sqlite3.Connection], T]

#: statements in one transaction
GROUP_MAX = 500
#: wait before statements that must not be lost are tried again, in seconds
RETRY_S = 1.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Order:
    statement: Statement[Any]
    #: keep trying while the file cannot be written
    keep: bool
    done: "Future[Any]"


class GroupCommit:
    """Runs statements in the order they were given. ``keep`` ones wait for a writable file; others fail with JournalUnavailable."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take over a connection made with ``isolation_level=None`` and ``check_same_thread=False``."""
        self._connection = connection
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._kept: list[_Order] = []
        self._stop = threading.Event()
        self._door = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, statement: Statement[T], *, keep: bool = False) -> "Future[T]":
        """Queue a statement; the future holds its value once it is on disk."""
        done: Future[T] = Future()
        with self._door:
            if not self._closed:
                self._orders.put(_Order(statement, keep, done))
                return done
        done.set_exception(JournalUnavailable("the journal is closed"))
        return done

    def close(self, *, timeout_s: float = 5.0) -> None:
        """Write what is queued, as far as that is possible, and end the thread."""
        with self._door:
            self._closed = True
            self._stop.set()
            self._orders.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.warning("journal thread still busy after timeout_s=%s", timeout_s)

    def _run(self) -> None:
        ended = False
        while not ended or self._kept:
            orders, was_last = self._collect()
            ended = ended or was_last
            if orders and not self._commit(orders):
                self._give_up(orders)
        self._connection.close()

    def _collect(self) -> tuple[list[_Order], bool]:
        """Wait for an order and take what else is there; the flag says that the end was asked for."""
        orders, self._kept = self._kept, []
        if not orders:
            first = self._orders.get()
            if first is None:
                return orders, True
            orders.append(first)
        while len(orders) < GROUP_MAX:
            try:
                order = self._orders.get_nowait()
            except queue.Empty:
                break
            if order is None:
                return orders, True
            orders.append(order)
        return orders, False

    def _commit(self, orders: list[_Order]) -> bool:
        """Run and commit the orders as one transaction; False if the file cannot be written."""
        values: list[Any] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            values = [_execute(order, self._connection) for order in orders]
            self._connection.execute("COMMIT")
        except sqlite3.Error as exc:
            logger.warning("journal not writable error=%s", exc)
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            return False
        for order, value in zip(orders, values, strict=True):
            if not isinstance(value, Exception):
                order.done.set_result(value)
            else:
                order.done.set_exception(value)
        return True

    def _give_up(self, orders: list[_Order]) -> None:
        """Refuse what may be refused; keep the rest for the next round, unless the end was asked for."""
        stopping = self._stop.wait(RETRY_S if all(order.keep for order in orders) else 0)
        for order in orders:
            if order.keep and not stopping:
                self._kept.append(order)
            else:
                order.done.set_exception(JournalUnavailable("the journal cannot be written"))


def _execute(order: _Order, connection: sqlite3.Connection) -> Any:
    """Run one statement. What is wrong with the statement is its caller's; an error of the file spoils the transaction."""
    try:
        return order.statement(connection)
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError) as exc:
        return exc
    except sqlite3.Error:
        raise
    except Exception as exc:
        return exc
