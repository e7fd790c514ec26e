"""Batch writer: one thread writes one SQLite file, many statements to a transaction.

Statements that arrive during a commit go into the next one together, so a hundred callers share one
``fsync``. A single caller waits for its own commit only.
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

from executor_client.wire.errors import JournalUnavailable

T = TypeVar("T")
Statement = Callable[[sqlite3.Connection], T]

#: statements in one transaction
BATCH_MAX = 500
#: wait before statements that must not be lost are tried again, in seconds
RETRY_S = 1.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Item:
    statement: Statement[Any]
    #: retry until the file can be written
    retry: bool
    future: "Future[Any]"


class BatchWriter:
    """Runs statements in the order they were submitted.

    Statements submitted with ``retry`` wait for a writable file; the others fail with JournalUnavailable.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take over a connection made with ``isolation_level=None`` and ``check_same_thread=False``."""
        self._connection = connection
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        #: items of a failed batch, to be written again
        self._pending: list[_Item] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, statement: Statement[T], *, retry: bool = False) -> "Future[T]":
        """Queue a statement; its future is resolved with the statement's value after the commit."""
        future: Future[T] = Future()
        with self._lock:
            if not self._is_closed:
                self._queue.put(_Item(statement, retry, future))
                return future
        future.set_exception(JournalUnavailable("the journal is closed"))
        return future

    def close(self, *, timeout_s: float = 5.0) -> None:
        """Write the queued statements, if the file can be written, and end the thread."""
        with self._lock:
            self._is_closed = True
            self._stop.set()
            self._queue.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.warning("journal thread still busy after timeout_s=%s", timeout_s)

    def abandon(self) -> None:
        """Take no more statements, in a forked process, which has no thread to write them."""
        self._lock = threading.Lock()  # another thread may have held the old one at the fork
        self._is_closed = True

    def _run(self) -> None:
        is_closing = False
        while not is_closing or self._pending:
            batch, was_last = self._next_batch()
            is_closing = is_closing or was_last
            if batch and not self._commit(batch):
                self._fail(batch)
        self._connection.close()

    def _next_batch(self) -> tuple[list[_Item], bool]:
        """Wait for an item and take all that are queued; the flag is True once the queue is closed."""
        batch, self._pending = self._pending, []
        if not batch:
            first = self._queue.get()
            if first is None:
                return batch, True
            batch.append(first)
        while len(batch) < BATCH_MAX:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return batch, True
            batch.append(item)
        return batch, False

    def _commit(self, batch: list[_Item]) -> bool:
        """Write a batch in one transaction; False if the file cannot be written."""
        values: list[Any] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            values = [attempt(item.statement, self._connection) for item in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error as exc:
            logger.warning("journal not writable error=%s", exc)
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            return False
        for item, value in zip(batch, values, strict=True):
            if not isinstance(value, Exception):
                item.future.set_result(value)
            else:
                item.future.set_exception(value)
        return True

    def _fail(self, batch: list[_Item]) -> None:
        """Fail the items of a batch, except those to retry; during a stop fail all of them."""
        stopping = self._stop.wait(RETRY_S if all(item.retry for item in batch) else 0)
        for item in batch:
            if item.retry and not stopping:
                self._pending.append(item)
            else:
                item.future.set_exception(JournalUnavailable("the journal cannot be written"))


def attempt(statement: Statement[T], connection: sqlite3.Connection) -> T | Exception:
    """Run one statement; return the error if the statement is at fault, raise it if the file is."""
    try:
        return statement(connection)
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError) as exc:
        return exc
    except sqlite3.Error:
        raise
    except Exception as exc:
        return exc
