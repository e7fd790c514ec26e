"""Promotion mark of a SQLite database: a record that its content has moved, and pauses of claims.

``promote`` copies a SQLite database to a server (docs/promote.md). The mark is SQLite's ``user_version``,
which each writing transaction reads once it holds the write lock: 0, MOVED, or the end of a pause of claims,
in seconds since 1970. MOVED is set by the transaction that decides the move, so after it nothing is written
here, and nothing fires on both databases.
"""

import sqlite3
from collections.abc import Callable

#: value of the mark of a database whose content has moved
MOVED = 1
#: first argument of the error of a transaction on a database that has moved
MOVED_MESSAGE = "this database has moved to another one (docs/promote.md)"
#: how long claims pause at most, in seconds
PAUSE_S = 12


class _Process:
    """What this process does when its database has moved."""

    def __init__(self) -> None:
        self.action: Callable[[], None] = lambda: None


_process = _Process()


def when_moved(action: Callable[[], None]) -> None:
    """Set what this process does once it finds that its database has moved; called in any thread."""
    _process.action = action


def check_mark(connection: sqlite3.Connection) -> int:
    """Return the mark as the open transaction sees it.

    If the content has moved, end the transaction, do what ``when_moved`` has set and raise
    sqlite3.OperationalError.
    """
    mark: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if mark != MOVED:
        return mark
    connection.rollback()
    _process.action()
    error = sqlite3.OperationalError(MOVED_MESSAGE)
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_READONLY, "SQLITE_READONLY"
    raise error
