"""Database faults: errors that are states of the database, and how often a lasting one is logged."""

import logging
import sqlite3

import pytest
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, ProgrammingError

from app.database.faults import REPEAT_MS, Fault, FaultLog, fault_of
from tests.support.database import Lost


def of_sqlite(code: int, message: str = "x") -> OperationalError:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return OperationalError("UPDATE", {}, error)


FULL = of_sqlite(sqlite3.SQLITE_FULL, "database or disk is full")


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (of_sqlite(sqlite3.SQLITE_BUSY), Fault.BUSY),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), Fault.BUSY),
        (FULL, Fault.FULL),
        (of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED), Fault.READ_ONLY),
        (of_sqlite(sqlite3.SQLITE_IOERR_WRITE), Fault.UNAVAILABLE),
        (of_sqlite(sqlite3.SQLITE_CANTOPEN), Fault.UNAVAILABLE),
        (of_sqlite(sqlite3.SQLITE_ERROR, "no such column: x"), None),
        (OperationalError("UPDATE", {}, sqlite3.OperationalError("without a code")), None),
        (OperationalError("UPDATE", {}, Lost(1205, "Lock wait timeout")), Fault.BUSY),
        (OperationalError("UPDATE", {}, Lost("x", sqlstate="40P01")), Fault.BUSY),
        (OperationalError("UPDATE", {}, Lost(2013, "Lost connection")), Fault.UNAVAILABLE),
        (OperationalError("UPDATE", {}, Lost("connection refused")), Fault.UNAVAILABLE),
        (OperationalError(None, None, Lost(1040, "Too many connections")), Fault.UNAVAILABLE),
        (OperationalError(None, None, Lost(1045, "Access denied for user")), Fault.UNAVAILABLE),
        (OperationalError("UPDATE", {}, Lost(1047, "WSREP has not yet prepared node")), Fault.UNAVAILABLE),
        (OperationalError(None, None, Lost(1180, "Got error 5 during COMMIT")), Fault.UNAVAILABLE),
        (
            OperationalError("UPDATE", {}, Lost("gone", sqlstate="57P01"), connection_invalidated=True),
            Fault.UNAVAILABLE,
        ),
        (InterfaceError("UPDATE", {}, Lost("closed")), Fault.UNAVAILABLE),
        (OperationalError("UPDATE", {}, Lost(1114, "The table is full")), Fault.FULL),
        (OperationalError("UPDATE", {}, Lost(1290, "running with the --read-only option")), Fault.READ_ONLY),
        (OperationalError("UPDATE", {}, Lost("no space left on device", sqlstate="53100")), Fault.FULL),
        (DBAPIError("UPDATE", {}, Lost("in a read-only transaction", sqlstate="25006")), Fault.READ_ONLY),
        (OperationalError("UPDATE", {}, Lost(1054, "Unknown column")), None),
        (ProgrammingError("UPDATE", {}, Lost("x", sqlstate="42703")), None),
    ],
)
def test_a_fault_is_a_state_of_the_database_and_not_a_bug(error: DBAPIError, fault: Fault | None) -> None:
    assert fault_of(error) is fault


def test_a_lasting_fault_is_logged_once_a_minute_whatever_fails(caplog: pytest.LogCaptureFixture) -> None:
    clock = [0]
    log = FaultLog(lambda: clock[0])
    for second in range(121):
        clock[0] = second * 1_000
        for name in ("leases", "resolve", "node-beat"):
            log.write(logging.getLogger(), f"loop round failed name={name}", FULL)
    assert [record.getMessage() for record in caplog.records] == [
        "loop round failed name=leases database_error=database or disk is full",
        "loop round failed name=leases database_error=database or disk is full; 179 more failures since"
        " the last such line",
        "loop round failed name=leases database_error=database or disk is full; 179 more failures since"
        " the last such line",
    ]
    assert clock[0] == 2 * REPEAT_MS


def test_each_failure_of_a_busy_database_and_each_bug_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog(lambda: 0)
    for error in (of_sqlite(sqlite3.SQLITE_BUSY), of_sqlite(sqlite3.SQLITE_ERROR)):
        for _ in range(2):
            log.write(logging.getLogger(), "claim failed", error)
    assert len(caplog.records) == 4
