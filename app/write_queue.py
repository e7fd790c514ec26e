"""Write queue of SQLite: the threads of one process write in the order in which they asked.

SQLite has one writer at a time and no queue: the next one is whichever looks at the right moment. So the threads of
a process wait for each other here, first come, first served, and only the first of them polls the file, against the
other processes.
"""

import sqlite3
import threading
import time
from collections import deque

#: between attempts to begin; SQLite's own back-off grows to 100 ms and misses the gaps between a busy process's writes
BEGIN_AGAIN_S = 0.001
#: the part of a result code of SQLite without its extension
PRIMARY_CODE = 0xFF
#: never set: its wait() is an interruptible sleep
_never = threading.Event()


class WriteQueue:
    """Fair lock: threads get it in the order in which they asked for it."""

    def __init__(self) -> None:
        # reentrant: a forgotten connection may be collected, and so released, anywhere in here
        self._mutex = threading.RLock()
        self._waiting: deque[threading.Event] = deque()
        self._taken = False

    def acquire(self, timeout_s: float) -> bool:
        """Wait for the lock; False where it was not free in time."""
        turn = threading.Event()
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            self._waiting.append(turn)
        try:
            return turn.wait(timeout_s) or not self._withdraw(turn)
        except BaseException:  # a signal's, in the main thread
            if not self._withdraw(turn):
                self.release()
            raise

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False

    def _withdraw(self, turn: threading.Event) -> bool:
        """Leave the queue; False where the lock was handed over in the same moment."""
        with self._mutex:
            if turn.is_set():
                return False
            self._waiting.remove(turn)
            return True


class QueuedConnection(sqlite3.Connection):
    """Connection that waits for its turn to write, and passes it on when its transaction is over, however it ended.

    The turn belongs to the connection, not to a thread: commit, rollback and close are all there is to end a
    transaction, and the pool calls one of them also for a connection that was forgotten.
    """

    #: set by the engine; one for all its connections
    queue: WriteQueue
    _has_turn = False

    def begin_immediate(self, timeout_ms: int) -> None:
        """Begin to write as soon as no other does.

        Raises sqlite3.OperationalError where that takes longer than ``timeout_ms``.
        """
        until = time.monotonic() + timeout_ms / 1000
        if not self._has_turn and not self.queue.acquire(timeout_ms / 1000):
            raise _locked()
        self._has_turn = True
        try:
            self._poll(until, timeout_ms)
        except BaseException:
            self._pass_on()
            raise

    def commit(self) -> None:
        """Commit; where that fails the turn is kept until the rollback."""
        try:
            super().commit()
        finally:
            self._pass_on_when_over()

    def rollback(self) -> None:
        """Roll back."""
        try:
            super().rollback()
        finally:
            self._pass_on_when_over()

    def close(self) -> None:
        """Close; an open transaction is rolled back by it."""
        try:
            super().close()
        finally:
            self._pass_on()

    def _poll(self, until: float, timeout_ms: int) -> None:
        self.execute("PRAGMA busy_timeout=0")
        try:
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

    def _pass_on_when_over(self) -> None:
        if self._has_turn and not self.in_transaction:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self.queue.release()


def _locked() -> sqlite3.OperationalError:
    """Return what SQLite itself raises when the file stays locked."""
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_BUSY, "SQLITE_BUSY"
    return error
