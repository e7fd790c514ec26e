"""SQLite side of a promotion: chunks of rows, the record of changes, and the mark.

On a connection of SQLite's own driver: values are read as stored, without the types of the models. While the
services go on writing, triggers record the key of each changed row in a table of their own.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.database.moves import MOVED_REVISION, PROMOTION_TABLE, Move
from app.database.promotion_mark import MOVED
from app.models.throttle import Throttle
from app.store.copies.schema import VERSION_TABLE

#: records of changed rows, in the order of the changes
CHANGE_TABLE = "xxl_job_promotion_change"
#: tables of a promotion itself, and of Alembic; and the counters of failed logins, whose names strangers
#: choose: some differ here and are equal on MySQL and MariaDB
NOT_COPIED = frozenset({PROMOTION_TABLE, CHANGE_TABLE, VERSION_TABLE, Throttle.__tablename__})
TRIGGER_PREFIX = "promotion_"
#: closed to all writers by the move: a program from before promotions does not know the mark
NEEDED_TO_FIRE = ("xxl_job_fire", "xxl_job_info", "xxl_job_lock", "xxl_job_log")
#: keys in one IN list
KEYS = 500
#: longest wait for the write lock, and the pause between two attempts
LOCK_S = 10.0
AGAIN_S = 0.001

Key = int | str
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the SQLite database; the first column is its primary key."""

    name: str
    columns: tuple[str, ...]

    @property
    def key(self) -> str:
        """Name of the primary key's column."""
        return self.columns[0]

    @property
    def column_list(self) -> str:
        """The columns, for a SELECT."""
        return ", ".join(f'"{name}"' for name in self.columns)


def connect(database: Path) -> sqlite3.Connection:
    """Open the database, which must exist, without starting transactions by itself."""
    connection = sqlite3.connect(
        f"{database.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA busy_timeout=5000")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock: all other writers wait, and go on at once if this process dies.

    Raises sqlite3.OperationalError if the lock is not free within LOCK_S.
    """
    until = time.monotonic() + LOCK_S
    connection.execute("PRAGMA busy_timeout=0")
    while not connection.in_transaction:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            threading.Event().wait(AGAIN_S)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Read one state of the database; part of an open transaction if there is one."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN DEFERRED")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def find_tables(connection: sqlite3.Connection) -> list[SourceTable]:
    """Return the tables to copy, without generated columns."""
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return [
        _find_table(connection, name) for name in sorted(row[0] for row in names) if name not in NOT_COPIED
    ]


def _find_table(connection: sqlite3.Connection, name: str) -> SourceTable:
    columns = connection.execute("SELECT name, pk, hidden FROM pragma_table_xinfo(?)", (name,)).fetchall()
    table_columns = [column for column in columns if not column[2]]
    return SourceTable(
        name, tuple(column[0] for column in sorted(table_columns, key=lambda column: not column[1]))
    )


def read_chunk(connection: sqlite3.Connection, table: SourceTable, after: Key | None, limit: int) -> Rows:
    """Return the next rows in the order of the key; ``after`` None: the first ones."""
    where = "" if after is None else f'WHERE "{table.key}" > ?'
    order = f'ORDER BY "{table.key}" LIMIT {limit}'
    statement = f'SELECT {table.column_list} FROM "{table.name}" {where} {order}'  # nosec B608
    return _read(connection, statement, () if after is None else (after,))


def read_rows(connection: sqlite3.Connection, table: SourceTable, keys: Sequence[Key]) -> Rows:
    """Return the rows with these keys that exist."""
    rows: Rows = []
    for start in range(0, len(keys), KEYS):
        some = tuple(keys[start : start + KEYS])
        marks = ", ".join("?" * len(some))
        where = f'WHERE "{table.key}" IN ({marks})'
        statement = f'SELECT {table.column_list} FROM "{table.name}" {where}'  # nosec B608
        rows += _read(connection, statement, some)
    return rows


def _read(connection: sqlite3.Connection, statement: str, parameters: tuple[Key, ...]) -> Rows:
    """Read rows; text that is no UTF-8 comes with surrogates, which the check of the values names."""
    try:
        return connection.execute(statement, parameters).fetchall()
    except sqlite3.OperationalError as exc:
        if "decode" not in str(exc):
            raise
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        return connection.execute(statement, parameters).fetchall()
    finally:
        connection.text_factory = str


def count_rows(connection: sqlite3.Connection, table: SourceTable) -> tuple[int, int]:
    """Return the number of rows and, if the key is a number, the sum of the keys."""
    keys = "COALESCE(SUM(id), 0)" if table.key == "id" else "0"
    statement = f'SELECT COUNT(*), {keys} FROM "{table.name}"'  # nosec B608
    counts: tuple[int, int] = connection.execute(statement).fetchone()
    return counts


def find_key_fingerprint(connection: sqlite3.Connection) -> str:
    """Return the fingerprint of the application key of the last node that was alive; empty: unknown."""
    query = "SELECT key_fingerprint FROM xxl_job_node WHERE key_fingerprint <> ''"
    row = connection.execute(f"{query} ORDER BY heartbeat_ms DESC LIMIT 1").fetchone()  # nosec B608
    return row[0] if row else ""


def find_revision(connection: sqlite3.Connection) -> str:
    """Return the revision of the schema."""
    revision: str = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()[0]  # nosec B608
    return revision


def find_highest_id(connection: sqlite3.Connection, table: SourceTable) -> int:
    """Return the highest id; 0: no rows."""
    statement = f'SELECT COALESCE(MAX(id), 0) FROM "{table.name}"'  # nosec B608
    highest: int = connection.execute(statement).fetchone()[0]
    return highest


def find_last_ids(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the last id given by each table that never gives one again."""
    return dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())


def start_recording(connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> None:
    """Record the key of every row that changes from the commit on; removes an earlier record."""
    with writing(connection):
        _drop_recording(connection)
        connection.execute(f"CREATE TABLE {CHANGE_TABLE} (seq INTEGER PRIMARY KEY, name TEXT, key)")
        for table in tables:
            insert = f"INSERT INTO {CHANGE_TABLE} (name, key) SELECT '{table.name}'"
            old, new = f'{insert}, OLD."{table.key}"', f'{insert}, NEW."{table.key}"'
            both = f'{new}; {old} WHERE OLD."{table.key}" IS NOT NEW."{table.key}"'
            for event, statement in (("INSERT", new), ("UPDATE", both), ("DELETE", old)):
                connection.execute(
                    f"CREATE TRIGGER {TRIGGER_PREFIX}{table.name}_{event} AFTER {event} ON {table.name}"
                    f" BEGIN {statement}; END"
                )


def stop_recording(connection: sqlite3.Connection) -> None:
    """Remove triggers and record."""
    with writing(connection):
        _drop_recording(connection)


def _drop_recording(connection: sqlite3.Connection) -> None:
    triggers = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE ?", (f"{TRIGGER_PREFIX}%",)
    ).fetchall()
    for (name,) in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute(f"DROP TABLE IF EXISTS {CHANGE_TABLE}")


def is_recording(connection: sqlite3.Connection) -> bool:
    """Whether there is a record of changes, which may be left by a promotion that was broken off."""
    rows = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (CHANGE_TABLE,))
    return rows.fetchone() is not None


def find_changes(connection: sqlite3.Connection, after: int) -> tuple[int, dict[str, list[Key]]]:
    """Return the number of the last change, and the keys changed after ``after`` by table."""
    last = connection.execute(f"SELECT COALESCE(MAX(seq), 0) FROM {CHANGE_TABLE}").fetchone()[0]  # nosec B608
    statement = f"SELECT DISTINCT name, key FROM {CHANGE_TABLE} WHERE seq > ? AND seq <= ?"  # nosec B608
    keys: dict[str, list[Key]] = {}
    for name, key in connection.execute(statement, (after, last)):
        keys.setdefault(name, []).append(key)
    return last, keys


def pause_claims(connection: sqlite3.Connection, *, until_s: int) -> None:
    """Keep the schedulers from claiming fires until a time, in seconds since 1970; 0: no longer."""
    with writing(connection):
        connection.execute(f"PRAGMA user_version = {until_s:d}")


def count_sending(connection: sqlite3.Connection) -> int:
    """Return the number of claimed runs whose outcome is not recorded yet."""
    sending = "SELECT COUNT(*) FROM xxl_job_fire WHERE state IN ('SENDING', 'ROUTING')"
    count: int = connection.execute(sending).fetchone()[0]
    return count


def mark_moved(connection: sqlite3.Connection, move: Move, *, now_ms: int) -> None:
    """Mark the database as moved, as part of the open writing transaction."""
    connection.execute(f"DROP TABLE IF EXISTS {PROMOTION_TABLE}")
    columns = "promotion_id TEXT, sealed_url TEXT, revision TEXT, moved_ms INTEGER"
    connection.execute(f"CREATE TABLE {PROMOTION_TABLE} ({columns})")
    connection.execute(
        f"INSERT INTO {PROMOTION_TABLE} VALUES (?, ?, ?, ?)",  # nosec B608
        (move.promotion_id, move.sealed_url, move.revision, now_ms),
    )
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = ?", (MOVED_REVISION,))  # nosec B608
    for table in NEEDED_TO_FIRE:
        for event in ("INSERT", "UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TRIGGER moved_{table}_{event} BEFORE {event} ON {table}"
                " BEGIN SELECT RAISE(ABORT, 'this database has moved to another one'); END"
            )
    connection.execute(f"PRAGMA user_version = {MOVED}")
