"""Connections of SQLite: set-up of the file and its cache, and the begin of transactions."""

import sqlite3
from functools import partial
from typing import Any, cast

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from app.database.connections.sqlite_wal_space import WalSpace
from app.database.connections.sqlite_write_lock import QueuedConnection, WriteQueue
from app.database.promotion_mark import check_mark

#: longest wait of a writer for other threads and processes together
BUSY_TIMEOUT_MS = 5_000
#: prepared statements cached per connection; each length of an IN list is one, 70 kB with 400 values
STATEMENTS_KEPT = 32
#: pages of the WAL at which a commit copies them to the file. Each run of a long log changes another page of
#: the index by job; at SQLite's default of 1,000 nearly every change is copied
CHECKPOINT_PAGES = 4_000
#: pages a transaction changes before some are written ahead, perhaps twice; by default as many as the cache
#: has, 500, and a claim of 500 runs changes more
SPILL_PAGES = 2_000


def engine_options() -> dict[str, Any]:
    """Return the options of ``create_engine`` for SQLite; ``watch`` completes them."""
    connect = {
        "check_same_thread": False,
        "timeout": BUSY_TIMEOUT_MS / 1000,
        "cached_statements": STATEMENTS_KEPT,
        "factory": QueuedConnection,
    }
    # The newest connection is used again: in rotation each would fill its own page cache.
    return {"connect_args": connect, "pool_use_lifo": True}


def watch(engine: Engine) -> None:
    """Set up connections, and begin their transactions; does nothing the second time."""
    if not event.contains(engine, "begin", _begin):
        event.listen(engine, "connect", partial(_set_up, WriteQueue()))
        event.listen(engine, "begin", _begin)


def _set_up(queue: WriteQueue, connection: QueuedConnection, _record: Any) -> None:
    connection.queue = queue
    connection.space = WalSpace(connection.execute("PRAGMA database_list").fetchone()[2])
    connection.isolation_level = None  # The driver must not start transactions itself.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"wal_autocheckpoint={CHECKPOINT_PAGES}",
        f"cache_spill={SPILL_PAGES}",
        f"busy_timeout={BUSY_TIMEOUT_MS}",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    raw = cast("QueuedConnection", connection.connection.driver_connection)
    is_writing = connection.get_execution_options().get("sqlite_begin") == "IMMEDIATE"
    try:
        if is_writing:
            raw.begin_immediate(BUSY_TIMEOUT_MS)
        else:
            raw.execute("BEGIN DEFERRED")
        raw.mark = check_mark(raw)
    except sqlite3.Error as exc:
        raise DBAPIError.instance("BEGIN", None, exc, sqlite3.Error, dialect=connection.dialect) from exc
