"""Result groups: results that wait for the same journal commit are stored by few statements."""

import sqlite3
import threading
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field

from executor_client.journal.writer import BatchWriter

#: results in one statement
GROUP_MAX = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """Stored part of a result; many runs have equal ones."""

    code: int
    msg: str | None
    #: as JSON text
    progress: str | None


@dataclass(slots=True)
class _Group:
    """Results of one statement, by outcome."""

    run_ids: dict[Outcome, list[int]] = field(default_factory=lambda: defaultdict(list))
    size: int = 0
    finished_ms: int = 0
    commit: "Future[None]" = field(default_factory=Future)


class ResultGroups:
    """Results on their way to the writer. Thread-safe."""

    def __init__(self, writer: BatchWriter) -> None:
        self._writer = writer
        self._lock = threading.Lock()
        #: group that still accepts results, because its statement has not begun
        self._open: _Group | None = None

    def add(self, run_id: int, outcome: Outcome, *, now_ms: int) -> "Future[None]":
        """Store a result; the future, shared by a group, is resolved after the commit."""
        with self._lock:
            group = self._open
            if group is None:
                group = self._open = _Group()
                group.commit = self._writer.submit(
                    lambda connection: self._store(group, connection), retry=True
                )
            group.run_ids[outcome].append(run_id)
            group.size += 1
            group.finished_ms = now_ms
            if group.size == GROUP_MAX or group.commit.done():  # done means that the journal is closed
                self._open = None
            return group.commit

    def _store(self, group: _Group, connection: sqlite3.Connection) -> None:
        """Store a group; the first result of a run stays, a success has no further use for a checkpoint."""
        with self._lock:
            if self._open is group:
                self._open = None
        for outcome, run_ids in group.run_ids.items():
            marks = ",".join("?" * len(run_ids))
            checkpoint = "NULL" if outcome.code == 200 else "checkpoint"
            sql = f"""UPDATE run SET state = 3, request = NULL, finished_ms = ?, handle_code = ?,
                      handle_msg = ?, progress = ?, checkpoint = {checkpoint}
                      WHERE id IN ({marks}) AND state < 3"""  # nosec B608  # constants and question marks
            values = (group.finished_ms, outcome.code, outcome.msg, outcome.progress)
            connection.execute(sql, (*values, *run_ids))
