"""Journal: durable state of the accepted runs, in SQLite.

A trigger is accepted only after its row is written. A run starts only with a row that is STARTED: moved there
from ACCEPTED, or written so if no other run is before it. A result stays FINISHED until an admin acknowledges
it. Acknowledged runs are kept for weeks to recognize duplicates.

A log id never runs twice, unless it comes from another database whose ids started again: then it belongs to
another job, or its known run was acknowledged long ago and triggered at another time.
"""

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from executor_client.journal.lock import lock_file
from executor_client.journal.result_groups import Outcome, ResultGroups
from executor_client.journal.writer import BatchWriter, Statement, attempt
from executor_client.wire.callbacks import CallbackItem
from executor_client.wire.errors import JournalUnavailable, StartRefused
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import RunRequest

#: triggers of one log id whose times differ by less are the same run in any state
SAME_TIME_MS = 10_000
#: an admin may send a trigger again, with another time, until this long after it acknowledged the result
RESENT_MS = 60_000
#: largest number of rows kept, regardless of age
ROWS_MAX = 2_000_000
#: rows deleted in one transaction
PRUNE_BATCH = 1_000

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    log_id INTEGER NOT NULL,
    log_date_time INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    request TEXT,
    process TEXT NOT NULL DEFAULT '',
    accepted_ms INTEGER NOT NULL,
    finished_ms INTEGER,
    acknowledged_ms INTEGER NOT NULL DEFAULT 0,
    handle_code INTEGER,
    handle_msg TEXT,
    checkpoint TEXT,
    progress TEXT,
    refused_ms INTEGER
);
CREATE INDEX run_log_id ON run (log_id);
CREATE INDEX run_open ON run (state, id) WHERE state < 4;
"""


class RunState(IntEnum):
    """State of a run; it only moves forward."""

    ACCEPTED = 1
    STARTED = 2
    FINISHED = 3
    ACKNOWLEDGED = 4


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Unfinished run of a previous process."""

    run_id: int
    request: RunRequest
    accepted_ms: int
    is_started: bool
    #: its processes, see ``processes.RunProcesses``; "" if there were none
    process: str


class Journal:
    """Journal file, locked for this process. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; raise StartRefused with one line if that fails."""
        with contextlib.ExitStack() as cleanup:
            self._lock_descriptor = lock_file(path)
            cleanup.callback(os.close, self._lock_descriptor)
            try:
                self._reader = _connect(path)
                cleanup.callback(self._reader.close)
                _prepare(self._reader, path)
                connection = _connect(path)
            except (sqlite3.Error, OSError) as exc:
                raise StartRefused(f"journal {path}: {exc}") from exc
            cleanup.pop_all()
        self._reading = threading.Lock()
        self._writer = BatchWriter(connection)
        self._writer.start()
        self._results = ResultGroups(self._writer)

    def accept(self, request: RunRequest, *, now_ms: int, starts: bool = False) -> int | None:
        """Store a run and return its id, None for a duplicate; raise JournalUnavailable.

        A run that ``starts`` at once is stored as STARTED, so that its start waits for no write of its own.
        """
        return self._writer.submit(_acceptance(request, now_ms, starts)).result()

    def accept_all(
        self, triggers: Collection[tuple[RunRequest, bool]], *, now_ms: int
    ) -> list[int | None | Exception]:
        """Store runs, each with whether it ``starts``, in one transaction; raise JournalUnavailable.

        Return for each what ``accept`` does, or the error that keeps only this one from being stored.
        """
        return self._writer.submit(_acceptances(triggers, now_ms)).result()

    def is_known(self, request: RunRequest, *, now_ms: int) -> bool:
        """Return whether this run was accepted before."""
        with self._reading:
            return _find(self._reader, request, now_ms) is not None

    def find_state(self, log_id: int) -> tuple[RunState, int | None] | None:
        """Return state and result code of the newest run of a log id, or None; raise JournalUnavailable."""
        rows = self._select(
            "SELECT state, handle_code FROM run WHERE log_id = ? ORDER BY id DESC LIMIT 1", (log_id,)
        )
        return (RunState(rows[0][0]), rows[0][1]) if rows else None

    def start(self, run_id: int) -> bool:
        """Move a run from ACCEPTED to STARTED; True for exactly one caller; raise JournalUnavailable."""
        sql = "UPDATE run SET state = 2 WHERE id = ? AND state = 1"
        return self._writer.submit(
            lambda connection: connection.execute(sql, (run_id,)).rowcount == 1
        ).result()

    def requeue(self, run_id: int) -> "Future[None]":
        """Move a run that was stored as STARTED, but did not start, back to ACCEPTED."""
        return self._update("UPDATE run SET state = 1 WHERE id = ? AND state = 2", (run_id,))

    def record_processes(self, run_id: int, identities: str) -> None:
        """Store the processes of a run, so that a restart can kill those that are still running."""
        self._update("UPDATE run SET process = ? WHERE id = ?", (identities, run_id))

    def save_checkpoint(self, run_id: int, text: str) -> bool:
        """Store what a retry of this run gets; False if the run has a result; raise JournalUnavailable."""
        sql = "UPDATE run SET checkpoint = ? WHERE id = ? AND state < 3"
        return self._writer.submit(
            lambda connection: connection.execute(sql, (text, run_id)).rowcount == 1
        ).result()

    def find_checkpoint(self, log_id: int, job_id: int) -> str | None:
        """Return the checkpoint of the newest run of a log id, None without one; raise JournalUnavailable."""
        sql = "SELECT checkpoint FROM run WHERE log_id = ? AND job_id = ? ORDER BY id DESC LIMIT 1"
        rows = self._select(sql, (log_id, job_id))
        return rows[0][0] if rows else None

    def finish(
        self, run_id: int, code: int, msg: str | None, *, now_ms: int, progress: str | None = None
    ) -> "Future[None]":
        """Store a result; the first one stays. Retried while the file cannot be written."""
        return self._results.add(run_id, Outcome(code, msg, progress), now_ms=now_ms)

    def acknowledge(self, run_ids: Collection[int], *, now_ms: int) -> "Future[None]":
        """Mark results as acknowledged by an admin."""
        marks = ",".join("?" * len(run_ids))
        sets = "state = 4, acknowledged_ms = ?, handle_msg = substr(handle_msg, 1, 1000)"
        # Only question marks are inserted.
        sql = f"UPDATE run SET {sets} WHERE id IN ({marks}) AND state = 3"  # nosec B608
        return self._update(sql, (now_ms, *run_ids))

    def refuse(self, run_ids: Collection[int], *, now_ms: int) -> dict[int, int]:
        """Mark results as refused by an admin; return since when each of them is."""
        marks = ",".join("?" * len(run_ids))

        def execute(connection: sqlite3.Connection) -> dict[int, int]:
            sql = f"UPDATE run SET refused_ms = ? WHERE id IN ({marks}) AND refused_ms IS NULL"  # nosec B608
            connection.execute(sql, (now_ms, *run_ids))
            sql = f"SELECT id, refused_ms FROM run WHERE id IN ({marks})"  # nosec B608  # question marks only
            return dict(connection.execute(sql, (*run_ids,)).fetchall())

        return self._writer.submit(execute).result()

    def find_unacknowledged(
        self, limit: int, *, skip: Collection[int] = ()
    ) -> list[tuple[int, CallbackItem]]:
        """Return the oldest unacknowledged results with their run ids, except those in ``skip``."""
        sql = """SELECT id, log_id, log_date_time, handle_code, handle_msg, checkpoint, progress FROM run
                 WHERE state = 3 ORDER BY id LIMIT ?"""
        rows = [row for row in self._select(sql, (limit + len(skip),)) if row[0] not in skip]
        return [(row[0], CallbackItem(*row[1:])) for row in rows[:limit]]

    def count_unacknowledged(self) -> int:
        """Return the number of unacknowledged results."""
        return int(self._select("SELECT count(*) FROM run WHERE state = 3", ())[0][0])

    def open_runs(self) -> list[OpenRun]:
        """Return the unfinished runs of a previous process in the order of acceptance."""
        rows = self._select(
            "SELECT id, request, accepted_ms, state, process FROM run WHERE state < 3 ORDER BY id", ()
        )
        return [
            OpenRun(
                row[0], RunRequest.from_wire(json.loads(row[1])), row[2], row[3] == RunState.STARTED, row[4]
            )
            for row in rows
        ]

    def prune(self, *, before_ms: int) -> int:
        """Delete acknowledged runs that finished before an instant or exceed ROWS_MAX; return the number."""
        newest = self._select("SELECT max(id) FROM run", ())[0][0] or 0
        count = 0
        while True:
            sql = """SELECT id FROM run WHERE state = 4 AND (finished_ms < ? OR id <= ?) AND id <= ?
                     ORDER BY id LIMIT ?"""
            oldest = self._select(sql, (before_ms, newest - ROWS_MAX, newest, PRUNE_BATCH))
            if not oldest:
                return count
            marks = ",".join("?" * len(oldest))
            sql = f"DELETE FROM run WHERE id IN ({marks})"  # nosec B608  # question marks only
            self._update(sql, tuple(row[0] for row in oldest)).result()
            count += len(oldest)

    def flush(self) -> None:
        """Wait until everything submitted so far is written; raise JournalUnavailable if it cannot be."""
        self._writer.submit(lambda connection: None).result()

    def close(self) -> None:
        """Write queued statements and release the file."""
        self._writer.close()
        with self._reading:
            self._reader.close()
        os.close(self._lock_descriptor)

    def abandon(self) -> None:
        """Write nothing in a forked process, and close the lock's descriptor, which would keep it locked."""
        self._writer.abandon()
        os.close(self._lock_descriptor)

    def _select(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            with self._reading:
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as exc:
            raise JournalUnavailable(f"the journal cannot be read: {exc}") from exc

    def _update(self, sql: str, values: tuple[Any, ...]) -> "Future[None]":
        """Queue a statement that is retried until it is written."""

        def execute(connection: sqlite3.Connection) -> None:
            connection.execute(sql, values)

        return self._writer.submit(execute, retry=True)


def _values(request: RunRequest, now_ms: int, starts: bool) -> tuple[Any, ...]:
    wire = dump_json(request.to_wire()).decode()
    state = RunState.STARTED if starts else RunState.ACCEPTED
    return (request.log_id, request.log_date_time, request.job_id, int(state), wire, now_ms)


def _acceptance(request: RunRequest, now_ms: int, starts: bool) -> Statement[int | None]:
    """Return the statement that stores a run and returns its id, None for a duplicate."""
    values = _values(request, now_ms, starts)

    def insert(connection: sqlite3.Connection) -> int | None:
        run_id = _find(connection, request, now_ms)
        if run_id is not None:
            # Redelivery of an acknowledged run: the admin may have lost its result, so it is sent again.
            connection.execute("UPDATE run SET state = 3 WHERE id = ? AND state = 4", (run_id,))
            return None
        return _insert(connection, [values])[0]

    return insert


def _acceptances(
    triggers: Collection[tuple[RunRequest, bool]], now_ms: int
) -> Statement[list[int | None | Exception]]:
    """Return the statement that stores runs: all together if none of their log ids is known."""
    rows = [_values(request, now_ms, starts) for request, starts in triggers]

    def insert(connection: sqlite3.Connection) -> list[int | None | Exception]:
        run_ids = attempt(lambda connection: _insert_unknown(connection, rows), connection)
        if isinstance(run_ids, list):
            return [*run_ids]
        return [attempt(_acceptance(request, now_ms, starts), connection) for request, starts in triggers]

    return insert


def _insert_unknown(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> list[int] | None:
    """Store runs together; None if one of their log ids is known, or there twice."""
    log_ids = {row[0] for row in rows}
    marks = ",".join("?" * len(log_ids))
    sql = f"SELECT 1 FROM run WHERE log_id IN ({marks}) LIMIT 1"  # nosec B608  # question marks only
    is_known = connection.execute(sql, [*log_ids]).fetchone() is not None
    return None if is_known or len(log_ids) < len(rows) else _insert(connection, rows)


def _insert(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> list[int]:
    """Store runs by one statement, which gives them consecutive ids."""
    marks = ",".join(["(?, ?, ?, ?, ?, ?)"] * len(rows))
    columns = "log_id, log_date_time, job_id, state, request, accepted_ms"
    sql = f"INSERT INTO run ({columns}) VALUES {marks}"  # nosec B608  # question marks only
    last = connection.execute(sql, [value for row in rows for value in row]).lastrowid or 0
    return [*range(last - len(rows) + 1, last + 1)]


def _find(connection: sqlite3.Connection, request: RunRequest, now_ms: int) -> int | None:
    """Return the row id of this run, or None."""
    sql = """SELECT id FROM run WHERE log_id = ? AND job_id = ?
             AND (state < 4 OR abs(log_date_time - ?) < ? OR acknowledged_ms > ?) ORDER BY id DESC"""
    values = (request.log_id, request.job_id, request.log_date_time, SAME_TIME_MS, now_ms - RESENT_MS)
    row = connection.execute(sql, values).fetchone()
    return None if row is None else int(row[0])


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;")
    elif version != SCHEMA_VERSION:
        raise StartRefused(
            f"journal {path}: format {version} is not supported, this version uses format {SCHEMA_VERSION}"
        )
    # The format version stays the same, so that an earlier version can still read the file.
    columns = {row[1] for row in connection.execute("PRAGMA table_info(run)")}
    for column, kind in (("checkpoint", "TEXT"), ("progress", "TEXT"), ("refused_ms", "INTEGER")):
        if column not in columns:
            connection.execute(f"ALTER TABLE run ADD COLUMN {column} {kind}")
