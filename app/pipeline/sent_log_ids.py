"""Highest log id sent: by it a node recognises a database that has lost its last commits.

A node notes it in a file of the home folder, for its next start: one write to the page cache for each claim,
without fsync, which survives the end of the process. The file names the database by its identity
(``app.store.fires.log_ids``), so that another one is not compared. ``XXL_JOB_HOME/sent_log_ids/NODE``, with
``IDENTITY ID`` in a fixed width.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

#: folder below the home, with one file per node: some share a home
FOLDER = "sent_log_ids"
#: a file of another node that was not written for so long is removed, if its id is in a newer one
KEPT_S = 7 * 24 * 3600


class SentLogIds:
    """Highest log id that this node has sent, or seen in the database. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: int | None = None
        self.identity = ""
        #: sent by this node or committed by any
        self.highest = 0
        #: sent by this process
        self.own = 0
        #: False while the database may be behind: nothing is sent
        self.is_ahead = True
        #: number of times that ids were not new, which proves a loss
        self.suspicions = 0

    def open(self, home: Path, node: str, identity: str) -> None:
        """Read what the nodes of this home have noted of this database, and note further ids there.

        Without a file, as on a full disk, ids are noted in memory only.
        """
        with self._lock:
            self.identity = identity
            self.highest = max(self.highest, read_highest(home, identity))
            try:
                (home / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
                path = home / FOLDER / sha256(node.encode()).hexdigest()[:12]
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                self._file = None
            self._write()
            if self._file is not None:
                _remove_old(home, identity, self.highest, os.fstat(self._file).st_mtime - KEPT_S)

    def note(self, log_id: int) -> None:
        """Note that a run with this id has been committed."""
        with self._lock:
            if log_id > self.highest:
                self.highest = log_id
                self._write()

    def admit(self, log_ids: Iterable[int], new_ids: Iterable[int]) -> bool:
        """Note the ids of runs to send; False, for none to be sent, if the database may be behind.

        That it is shows if ``new_ids``, just given, are not new.
        """
        with self._lock:
            if min(new_ids, default=self.own + 1) <= self.own:
                self.is_ahead, self.suspicions = False, self.suspicions + 1
            if not self.is_ahead:
                return False
            self.own = max((self.own, *log_ids))
        self.note(self.own)
        return True

    def trust(self, suspicions: int) -> None:
        """Let runs be sent, unless there were further suspicions since a check of the database began."""
        with self._lock:
            self.is_ahead = self.suspicions == suspicions

    def _write(self) -> None:
        if self._file is None:
            return
        try:
            os.pwrite(self._file, f"{self.identity} {self.highest:020d}\n".encode(), 0)
        except OSError:  # The file keeps an earlier id, which is too low at worst.
            return


def read_highest(home: Path, identity: str) -> int:
    """Return the highest id of a run in this database that nodes of this home have noted; 0: none."""
    return max((number for _, number in _read_all(home, identity)), default=0)


def _read_all(home: Path, identity: str) -> Iterator[tuple[Path, int]]:
    for path in (home / FOLDER).glob("*"):
        try:
            name, number = path.read_text(encoding="ascii").split()
            if name == identity:
                yield path, int(number)
        except (OSError, ValueError):  # The file is incomplete, or not ours.
            continue


def _remove_old(home: Path, identity: str, highest: int, before_s: float) -> None:
    """Remove the files with lower ids of this database that were last written before an instant."""
    for path, number in _read_all(home, identity):
        with suppress(OSError):
            if number < highest and path.stat().st_mtime < before_s:
                path.unlink()
