"""Upgrade lock: lets one process at a time change the schema of a database.

An advisory lock of the server, held by the connection that does the work; on SQLite a lock on the folder of
the database, which leaves no file behind. Either ends with its holder, also after ``kill -9``. A server
notices that only when the running statement has ended, so no one works beside it.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app.database.dialects.choice import dialect_of
from app.database.urls import sqlite_file
from app.errors import NotConfigured

#: longest wait for another upgrade; below the 90 s in which systemd expects a service to start
WAIT_S = 60.0
POLL_S = 0.2
#: longest wait of a change for transactions that read its table: everything else queues up behind it
TABLE_WAIT_S = 5
#: so long, in seconds, MariaDB and MySQL keep the idle connection that holds the lock at least: their default
IDLE_S = 28_800
#: name of the advisory lock
LOCK = "xxl_job_upgrade"


@contextmanager
def upgrade_lock(connection: Connection, *, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the upgrade lock of the connection's database; leaves no transaction open.

    Raises NotConfigured if another process holds it for longer than ``wait_s``, or if a pooler would give the
    lock to whomever comes next.
    """
    file = sqlite_file(connection.engine.url)
    if file is not None:
        with folder_lock(file, wait_s):
            yield
        return
    lock = dialect_of(connection).advisory_lock(connection, LOCK)
    assert lock is not None, "every server has advisory locks"
    _allow_idleness(connection)
    _await(lambda: bool(_call(connection, lock.take, lock.key)), wait_s)
    try:
        yield
    finally:
        with suppress(DBAPIError):  # A lost connection has given the lock back.
            if not connection.invalidated:
                connection.rollback()
                _call(connection, lock.free, lock.key)


def _allow_idleness(connection: Connection) -> None:
    """Keep the server from ending the connection while a dump is made or loaded, which takes others."""
    allowance = dialect_of(connection).idle_allowance(IDLE_S)
    if allowance is not None:
        connection.execute(text(allowance))
    connection.commit()


def limit_table_waits(connection: Connection) -> None:
    """Let a change of the schema fail rather than hold up all nodes behind a long transaction."""
    limit = dialect_of(connection).table_wait_limit(TABLE_WAIT_S)
    if limit is not None:
        connection.execute(text(limit))
    connection.commit()


def allow_zero_dates(connection: Connection) -> None:
    """Let MySQL rebuild tables that have a date such as 0000-00-00, which it does not accept by default."""
    if dialect_of(connection).allow_zero_dates(connection):
        connection.commit()


@contextmanager
def folder_lock(database: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the upgrade lock of a SQLite file, which need not exist."""
    try:
        descriptor = os.open(database.parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        raise NotConfigured(f"XXL_JOB_DATABASE_URL: {database.parent}: {exc.strerror}") from exc

    def take() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as exc:
            raise NotConfigured(
                f"XXL_JOB_DATABASE_URL: {database.parent} cannot be locked ({exc.strerror}), as on NFS;"
                " SQLite needs a local disk"
            ) from exc
        return True

    try:
        _await(take, wait_s)
        yield
    finally:
        os.close(descriptor)


def _await(take: Callable[[], bool], wait_s: float) -> None:
    until = time.monotonic() + wait_s
    pause = threading.Event()
    while not take():
        if time.monotonic() > until:
            raise NotConfigured(
                "another upgrade, backup, restore or promotion of this database"
                f" did not end within {wait_s:.0f} s; start again when it has ended"
            )
        pause.wait(POLL_S)


def _call(connection: Connection, function: str, key: int | str) -> object:
    value = connection.scalar(text(f"SELECT {function}"), {"key": key})  # nosec B608
    connection.commit()
    return value
