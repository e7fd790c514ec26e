"""Write queue of SQLite: a fair lock for the writing threads of one process.

SQLite has one writer at a time and no queue, so which one is next is a matter of luck. Therefore the threads
of a process queue here, first come, first served, and only the first one polls the file, competing with other
processes.
"""

import sqlite3
import threading
import time
from collections import deque
from contextlib import suppress

from app.database.connections.sqlite_wal_space import WalSpace

#: wait between attempts; SQLite's own back-off grows to 100 ms and misses the gaps between another process's
#: writes
BEGIN_AGAIN_S = 0.001
#: mask of the primary part of an SQLite result code
PRIMARY_CODE = 0xFF
#: never set: its wait() is an interruptible sleep
_never = threading.Event()


class WriteQueue:
    """Fair lock: threads get it in the order of their requests."""

    def __init__(self) -> None:
        # The lock is reentrant, because garbage collection may close a forgotten connection, and so release
        # the write lock, anywhere in these methods.
        self._mutex = threading.RLock()
        self._waiting: deque[threading.Event] = deque()
        self._is_taken = False

    def acquire(self, timeout_s: float) -> bool:
        """Wait for the lock; False if it was not free in time."""
        ticket = threading.Event()
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return True
            self._waiting.append(ticket)
        try:
            return ticket.wait(timeout_s) or not self._withdraw(ticket)
        except BaseException:  # A signal handler may raise it, in the main thread.
            if not self._withdraw(ticket):
                self.release()
            raise

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_taken = False

    def _withdraw(self, ticket: threading.Event) -> bool:
        """Leave the queue; False if the lock was handed over at the same moment."""
        with self._mutex:
            if ticket.is_set():
                return False
            self._waiting.remove(ticket)
            return True


class QueuedConnection(sqlite3.Connection):
    """Connection that acquires the lock to write and releases it when its transaction ends, however it ends.

    The lock belongs to the connection, not to a thread: only commit, rollback and close end a transaction,
    and the pool calls one of them even for a connection that was never returned.
    """

    #: set by the engine, which shares one among its connections
    queue: WriteQueue
    #: set by the engine, of this connection
    space: WalSpace
    #: promotion mark (``app.database.moves``) as read by the last writing transaction
    mark = 0
    _holds_lock = False

    def begin_immediate(self, timeout_ms: int) -> None:
        """Start a writing transaction as soon as no other is open.

        Raises sqlite3.OperationalError if that takes longer than ``timeout_ms``.
        """
        until = time.monotonic() + timeout_ms / 1000
        if not self._holds_lock and not self.queue.acquire(timeout_ms / 1000):
            raise _lock_error()
        self._holds_lock = True
        try:
            self._poll(until, timeout_ms)
        except BaseException:
            self._release()
            raise

    def commit(self) -> None:
        """Commit; if that fails, the lock is kept until the rollback."""
        try:
            super().commit()
        finally:
            self._release_if_ended()

    def rollback(self) -> None:
        """Roll back."""
        try:
            super().rollback()
        finally:
            self._release_if_ended()

    def close(self) -> None:
        """Close; this rolls back an open transaction."""
        try:
            super().close()
        finally:
            self._release()

    def _poll(self, until: float, timeout_ms: int) -> None:
        self.execute("PRAGMA busy_timeout=0")
        try:
            self._make_room()
            while True:
                try:
                    self.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as exc:
                    if (
                        exc.sqlite_errorcode & PRIMARY_CODE != sqlite3.SQLITE_BUSY
                        or time.monotonic() >= until
                    ):
                        raise
                else:
                    return
                _never.wait(BEGIN_AGAIN_S)
        finally:
            self.execute(f"PRAGMA busy_timeout={timeout_ms}")

    def _make_room(self) -> None:
        """Empty the WAL if it takes too much of the disk; a reader that needs it postpones this."""
        if self.space.is_short(time.monotonic()):
            with suppress(sqlite3.Error):  # The transaction reports a full disk.
                self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _release_if_ended(self) -> None:
        if self._holds_lock and not self.in_transaction:
            self._release()

    def _release(self) -> None:
        if self._holds_lock:
            self._holds_lock = False
            self.queue.release()


def _lock_error() -> sqlite3.OperationalError:
    """Return the error SQLite itself raises if the file stays locked."""
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_BUSY, "SQLITE_BUSY"
    return error
