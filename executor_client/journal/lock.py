"""Journal lock: one process holds it, because two executors would run the same work."""

import contextlib
import fcntl
import os
from pathlib import Path

from executor_client.wire.errors import HeldElsewhere, StartRefused


def lock_file(path: Path) -> int:
    """Create a journal's file and lock it for this process; return the descriptor, or raise StartRefused.

    The kernel releases the lock when the process ends.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        descriptor = os.open(
            path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600
        )
    except OSError as exc:
        raise StartRefused(
            f"journal {path}: cannot create it: {exc.strerror}; set XXL_JOB_HOME to a writable folder"
        ) from exc
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(descriptor)
        raise HeldElsewhere(
            f"journal {path}: another executor with this app name and port is running"
        ) from exc
    return descriptor


def is_locked(path: Path) -> bool:
    """Return whether a process holds a journal; False also if that cannot be determined."""
    try:
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
