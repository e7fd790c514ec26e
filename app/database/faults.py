"""Database faults: errors caused by the database's state (busy, full, read-only, away), not by the statement.

The same work succeeds later, so a traceback does not help.
"""

import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError

from app.clock import MINUTE_MS, Millis, monotonic_ms
from app.database.connections.sqlite_write_lock import PRIMARY_CODE
from app.database.engine import is_transient
from app.database.promotion_mark import MOVED_MESSAGE
from app.errors import NotConfigured

#: the database is away, full or locked: the same work may succeed later
AWAY = (OperationalError, InterfaceError)
#: period of the log line about a fault that persists
REPEAT_MS: Millis = MINUTE_MS
#: seconds in Retry-After
RETRY_AFTER_S = 5
#: PyMySQL error codes from here on are the client's: no connection, connection lost
_MYSQL_CLIENT_CODES = 2_000


class Fault(StrEnum):
    """State in which a database cannot work."""

    #: locks are held for too long
    BUSY = "busy"
    #: the disk is full
    FULL = "full"
    READ_ONLY = "read-only"
    #: not reachable, takes no connection of ours, or its file cannot be opened or read
    UNAVAILABLE = "unavailable"


_OF_SQLITE = {
    sqlite3.SQLITE_BUSY: Fault.BUSY,
    sqlite3.SQLITE_LOCKED: Fault.BUSY,
    sqlite3.SQLITE_FULL: Fault.FULL,
    sqlite3.SQLITE_READONLY: Fault.READ_ONLY,
    sqlite3.SQLITE_IOERR: Fault.UNAVAILABLE,
    sqlite3.SQLITE_CANTOPEN: Fault.UNAVAILABLE,
    sqlite3.SQLITE_PERM: Fault.UNAVAILABLE,
}
#: disk full, table full; --read-only, read-only transaction, read-only mode; too many connections, in all or
#: of this user (1226: or statements); refused user, database, password or host; shutting down; Galera
#: without a quorum, at a statement and at a commit
_OF_MYSQL = {
    1021: Fault.FULL,
    1114: Fault.FULL,
    1290: Fault.READ_ONLY,
    1792: Fault.READ_ONLY,
    1836: Fault.READ_ONLY,
    **dict.fromkeys((1040, 1203, 1226, 1044, 1045, 1049, 1129, 1130, 1053, 1047, 1180), Fault.UNAVAILABLE),
}
#: disk full; read-only transaction, as on a standby
_OF_POSTGRESQL = {"53100": Fault.FULL, "25006": Fault.READ_ONLY}


def fault_of(error: DBAPIError) -> Fault | None:
    """Return the state of the database behind an error; None if the statement itself is at fault."""
    if isinstance(error.orig, sqlite3.Error):
        return _OF_SQLITE.get(getattr(error.orig, "sqlite_errorcode", 0) & PRIMARY_CODE)
    if is_transient(error):
        return Fault.BUSY
    if error.connection_invalidated or isinstance(error, InterfaceError):
        return Fault.UNAVAILABLE
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    if isinstance(code, int):
        return Fault.UNAVAILABLE if code >= _MYSQL_CLIENT_CODES else _OF_MYSQL.get(code)
    state = getattr(error.orig, "sqlstate", "")
    if isinstance(error, OperationalError) and state is None:
        return Fault.UNAVAILABLE
    return _OF_POSTGRESQL.get(state)


def data_fault(error: Exception) -> str | None:
    """Return the driver's message if a value is refused that no repetition makes fit; None otherwise.

    Such as a text too long for its column or a number out of range: class 22 of PostgreSQL, and 1264, 1366,
    1406 and their like of MySQL.
    """
    return reason_of(error) if isinstance(error, DataError) else None


def reason_of(error: DBAPIError) -> str:
    """Return the driver's message in one line."""
    return (str(error.orig).splitlines() or [""])[0]


def not_configured(error: DBAPIError) -> NotConfigured:
    """Return the start-up error for a database that cannot be used."""
    return NotConfigured(f"XXL_JOB_DATABASE_URL: {reason_of(error)}")


class FaultLog:
    """Log of failed database work: one line a minute for a persistent fault, one line for each other failure.

    BUSY is logged each time: it ends soon, and each line names work that was not done.
    """

    def __init__(self, monotonic: Callable[[], Millis] = monotonic_ms) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._logged_at: dict[Fault, Millis] = {}
        self._silent_counts: Counter[Fault] = Counter()

    def write(self, logger: logging.Logger, event: str, error: DBAPIError) -> None:
        """Log that ``event`` happened because of ``error``."""
        if error.orig is not None and error.orig.args[:1] == (MOVED_MESSAGE,):
            logger.info("%s once: the database has moved", event)  # It is repeated on the new one.
            return
        fault = fault_of(error)
        count = 0
        if fault is not None and fault is not Fault.BUSY:
            with self._lock:
                last = self._logged_at.get(fault)
                if last is not None and self._monotonic() - last < REPEAT_MS:
                    self._silent_counts[fault] += 1
                    return
                self._logged_at[fault] = self._monotonic()
                count = self._silent_counts.pop(fault, 0)
        more = f"; {count} more failures since the last such line" if count else ""
        logger.error("%s database_error=%s%s", event, reason_of(error), more)


#: the fault log of this process
fault_log = FaultLog()
