"""Job logs: ``<log root>/2024-05-01/90213.log``, written in whole lines, expired by day.

A file exists if and only if its run was started: reading and reporting never create one.
"""

import contextlib
import logging
import os
import shutil
import stat
import threading
from pathlib import Path

from executor_client.clock import local_day, local_stamp, parse_day

#: a retention below this keeps logs for ever, as in the original
MIN_RETENTION_DAYS = 3

_DAY_MODE = 0o750
_FILE_MODE = 0o640
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

logger = logging.getLogger(__name__)


def log_file(root: Path, log_id: int, log_date_time: int) -> Path:
    """Return a run's log path, made from two integers only; raise ``ValueError`` if no run can have them."""
    if log_id <= 0 or log_date_time <= 0:
        raise ValueError(f"no log for id {log_id} at {log_date_time}")
    return root / local_day(log_date_time) / f"{log_id:d}.log"


def open_file(path: Path, flags: int) -> int:
    """Open a log without following a link, neither of the file nor of its day; raise ``OSError``."""
    if path.parent.is_symlink():
        raise OSError(f"{path.parent} is a link")
    descriptor = os.open(path, flags | _SAFE | getattr(os, "O_NONBLOCK", 0), _FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a plain file")
    return descriptor


def append_line(path: Path, text: str, *, now_ms: int) -> bool:
    """Add a line to a log that exists; False if there is none or it cannot be written."""
    try:
        descriptor = open_file(path, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return False
    try:
        return _write_all(descriptor, f"{local_stamp(now_ms)} {text}\n")
    finally:
        os.close(descriptor)


class RunLog:
    """The log of one run: opened when it starts, closed when it ends; later lines still arrive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._descriptor = -1

    def open(self) -> None:
        """Create the file, and its day's folder. What fails here costs the log, not the run."""
        try:
            self.path.parent.mkdir(mode=_DAY_MODE, parents=True, exist_ok=True)
            self._descriptor = open_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as exc:
            logger.warning("job log not writable path=%s error=%s", self.path, exc)

    def write(self, text: str) -> bool:
        """Add whole lines; every line end becomes LF. False if they could not be written."""
        if not text:
            return True
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = text if text.endswith("\n") else text + "\n"
        with self._lock:
            if self._descriptor >= 0:
                return _write_all(self._descriptor, text)
        return self._write_late(text)

    def _write_late(self, text: str) -> bool:
        """Add lines of a handler that goes on after its run has ended."""
        try:
            descriptor = open_file(self.path, os.O_WRONLY | os.O_APPEND)
        except OSError:
            return False
        try:
            return _write_all(descriptor, text)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file; may be called twice."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _write_all(descriptor: int, text: str) -> bool:
    piece = memoryview(text.encode("utf-8", "replace"))
    try:
        while piece:
            piece = piece[os.write(descriptor, piece) :]
    except OSError:
        return False
    return True


def expire_logs(root: Path, retention_days: int, *, now_ms: int) -> list[str]:
    """Delete the folders of days that are ``retention_days`` or more ago; return their names. Files and other folders stay."""
    if retention_days < MIN_RETENTION_DAYS or not root.is_dir():
        return []
    today = parse_day(local_day(now_ms))
    expired = []
    for entry in sorted(root.iterdir()):
        day = parse_day(entry.name)
        if (
            day is not None
            and today is not None
            and (today - day).days >= retention_days
            and entry.is_dir()
            and not entry.is_symlink()
        ):
            shutil.rmtree(entry, ignore_errors=True)
            expired.append(entry.name)
    return expired
