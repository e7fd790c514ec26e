"""Wake-up signals between the processes of one machine: who has committed fires that are due wakes the dispatchers.

A datagram to each socket below the home folder; it carries nothing, the rows say all. It may get lost: the dispatchers poll
as well, and those of other machines only do that. Beside ``home`` because every process that writes fires may send.
"""

import logging
import os
import re
import socket
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

#: folder of the sockets below the home folder
FOLDER = "wake"
#: bytes of a socket's path that every Unix can hold
PATH_BYTES_MAX = 100


def send_wake_up(home: Path) -> None:
    """Wake every dispatcher of this machine that listens; never fails, never waits."""
    with suppress(OSError, AttributeError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for path in (home / FOLDER).glob("*.sock"):
            with suppress(OSError):  # a dispatcher that is gone, or has signals enough
                sender.sendto(b"1", _short(path))


class WakeSocket:
    """The receiving side: readable with every signal."""

    def __init__(self, home: Path, node: str) -> None:
        self._path = home / FOLDER / f"{re.sub(r'[^A-Za-z0-9._-]', '_', node)}.sock"
        self._socket: socket.socket | None = None

    def open(self) -> int | None:
        """Listen in the place of an earlier life of this node; return the file descriptor, None where that cannot be."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._socket.bind(_short(self._path))
        except (OSError, AttributeError) as exc:
            logger.warning("no wake-up signals, new fires are found by the poll path=%s reason=%s", self._path, exc)
            self.close()
            return None
        return self._socket.fileno()

    def drain(self) -> None:
        """Take all signals that wait."""
        with suppress(OSError):
            while self._socket is not None and self._socket.recv(1):
                pass

    def close(self) -> None:
        """Listen no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def _short(path: Path) -> str:
    """Return a path's absolute form, or the relative one where that is too long for the address of a socket."""
    return str(path) if len(os.fsencode(path)) <= PATH_BYTES_MAX else os.path.relpath(path)
