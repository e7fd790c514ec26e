"""Job log files: ``<log root>/2024-05-01/90213.log``, written in whole lines, expired by day.

A file exists only if its run was started: reading and callbacks never create one.
"""

import contextlib
import logging
import os
import shutil
import stat
import threading
from collections.abc import Collection
from pathlib import Path

from executor_client.wire.clock import local_day, local_stamp, parse_day

#: a shorter retention keeps logs forever, as in XXL-JOB
MIN_RETENTION_DAYS = 3

#: longest line, in characters; a longer one is written in pieces. It has room for the longest result message,
#: and fits into a page of the log reader, in any language
LINE_MAX = 60 * 1024

_LINE_END = ord("\n")
_DAY_MODE = 0o700
_FILE_MODE = 0o600
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

logger = logging.getLogger(__name__)


def log_name(log_id: int, log_date_time: int) -> str:
    """Return ``2024-05-01/90213.log``, from two integers only; raise ``ValueError`` for impossible ones."""
    if log_id <= 0 or log_date_time <= 0:
        raise ValueError(f"no log for id {log_id} at {log_date_time}")
    return f"{local_day(log_date_time)}/{log_id:d}.log"


def log_file(root: Path, log_id: int, log_date_time: int) -> Path:
    """Return a run's log path; raise ``ValueError`` as ``log_name``."""
    return root / log_name(log_id, log_date_time)


def open_file(path: Path, flags: int) -> int:
    """Open a log without following links, of file or folder; raise ``OSError``."""
    _refuse_link(path)
    descriptor = os.open(path, flags | _SAFE | getattr(os, "O_NONBLOCK", 0), _FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return descriptor


def create_file(path: Path) -> int:
    """Open a log for appending, create it if it is missing; raise ``OSError`` as ``open_file``."""
    _refuse_link(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        return os.open(path, flags | os.O_EXCL | _SAFE, _FILE_MODE)  # a new file is a regular one
    except FileExistsError:
        return open_file(path, flags)


def _refuse_link(path: Path) -> None:
    folder = os.path.dirname(path)  # noqa: PTH120 - called for each run; twice as fast as pathlib
    if os.path.islink(folder):  # noqa: PTH114
        raise OSError(f"{folder} is a symbolic link")


def append_line(path: Path, text: str, *, now_ms: int) -> bool:
    """Append a line to an existing log; False if it does not exist or cannot be written."""
    return RunLog(path).write(f"{local_stamp(now_ms)} {text}\n")


def break_lines(text: str, length_max: int = LINE_MAX) -> str:
    """Return text with its lines broken into pieces of at most ``length_max`` characters."""
    if len(text) <= length_max:
        return text
    return "\n".join(
        line[start : start + length_max]
        for line in text.split("\n")
        for start in range(0, max(len(line), 1), length_max)
    )


class RunLog:
    """Log of one run, open while it runs; later lines are still appended.

    The first lines wait for the next ones or the end, so that a run without much output writes once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Re-entrant, because the garbage collector may print a warning of the run while the lock is held.
        self._lock = threading.RLock()
        self._descriptor = -1
        #: lines from before the file was created; None: not open, or the file was created
        self._begin: str | None = None
        #: whether the last line has no end, because the disk was full
        self._is_cut = False
        self._has_failed = False

    def open(self, begin: str = "") -> None:
        """Begin with these lines; the file is created with the next ones, or at once without any."""
        self._begin = begin
        if not begin:
            self.flush()

    def write(self, text: str) -> bool:
        """Append whole lines with LF line ends; False if they could not be written."""
        if not text:
            return True
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = break_lines(text if text.endswith("\n") else text + "\n")
        with self._lock:
            if self._begin is not None:
                return self._create(text)
            if self._descriptor >= 0:
                return self._append(self._descriptor, text)
        return self._write_late(text)

    def flush(self) -> None:
        """Create the file with the buffered lines."""
        with self._lock:
            if self._begin is not None:
                self._create()

    def after_fork(self) -> None:
        """Renew, in a forked process, the lock that another thread may have held at the fork."""
        self._lock = threading.RLock()

    def _create(self, text: str = "") -> bool:
        """Create the file and its folder; a failure does not fail the run, and the next lines try again."""
        begin, self._begin = self._begin or "", None
        try:
            self._descriptor = self._open_or_create()
        except OSError as exc:
            self._begin = begin
            self._log_failure(exc)
            return False
        return self._append(self._descriptor, begin + text)

    def _open_or_create(self) -> int:
        try:
            return create_file(self.path)
        except FileNotFoundError:  # the first run of a day
            self.path.parent.mkdir(mode=_DAY_MODE, parents=True, exist_ok=True)
            return create_file(self.path)

    def _write_late(self, text: str) -> bool:
        """Append lines of a handler that continues after its run has ended."""
        try:
            descriptor = open_file(self.path, os.O_WRONLY | os.O_APPEND)
        except OSError:
            return False
        try:
            return self._append(descriptor, text)
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int, text: str) -> bool:
        """Append lines, below one that was cut; a failure does not fail the run."""
        remaining = memoryview(("\n" + text if self._is_cut else text).encode("utf-8", "replace"))
        try:
            while remaining:
                count = os.write(descriptor, remaining)
                self._is_cut = remaining[count - 1] != _LINE_END
                remaining = remaining[count:]
        except OSError as exc:
            self._log_failure(exc)
            return False
        return True

    def _log_failure(self, error: OSError) -> None:
        """Log the first failure of the run."""
        if not self._has_failed:
            self._has_failed = True
            logger.warning("job log incomplete path=%s error=%s", self.path, error)

    def close(self) -> None:
        """Write buffered lines and close the file; idempotent."""
        with self._lock:
            self.flush()
            self._begin = None  # it may still wait for a file that cannot be created
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def expire_logs(root: Path, retention_days: int, *, now_ms: int, running: Collection[Path] = ()) -> list[str]:
    """Delete the folders of days ``retention_days`` or more ago; return their names.

    A folder with logs of running runs keeps those files.
    """
    if retention_days < MIN_RETENTION_DAYS or not root.is_dir():
        return []
    today = parse_day(local_day(now_ms))
    names = []
    for entry in sorted(root.iterdir()):
        day = parse_day(entry.name)
        if (
            day is not None
            and today is not None
            and (today - day).days >= retention_days
            and entry.is_dir()
            and not entry.is_symlink()
        ):
            open_logs = {path for path in running if path.parent == entry}
            if _delete(entry, open_logs):
                names.append(entry.name)
    return names


def _delete(folder: Path, open_logs: set[Path]) -> bool:
    """Delete a folder of logs, or everything in it except ``open_logs``; True for the whole folder."""
    if not open_logs:
        shutil.rmtree(folder, ignore_errors=True)
        return True
    for path in set(folder.iterdir()) - open_logs:
        with contextlib.suppress(OSError):
            path.unlink()
    return False
