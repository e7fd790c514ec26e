"""Wake-up signals: datagrams that make the dispatchers sharing a home folder poll at once.

They carry no data and may be lost; dispatchers also poll periodically.
"""

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.clock import DAY_MS, SECOND_MS, now_ms

logger = logging.getLogger(__name__)

#: folders of the sockets below the home folder: of the dispatchers, of the task runners, of backfills
FOLDER = "wake"
TASKS = "wake-tasks"
BACKFILLS = "wake-backfills"
#: bytes of a socket's path that every Unix can hold
PATH_BYTES_MAX = 100


def send_wake_up(home: Path, folder: str = FOLDER) -> None:
    """Wake every listener of ``folder`` below this home folder; never fails, never blocks."""
    with suppress(OSError, AttributeError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for path in (home / folder).glob("*.sock"):
            try:
                with _address(path) as address:
                    sender.sendto(b"1", address)
            except ConnectionRefusedError:  # Its node has ended.
                _remove_old(path)
            except OSError:  # It has signals pending.
                continue


def _remove_old(path: Path) -> None:
    """Remove the socket of a node that ended over a day ago; the next start may be replacing a newer one."""
    with suppress(OSError):
        if path.stat().st_mtime * SECOND_MS < now_ms() - DAY_MS:
            path.unlink()


class WakeSocket:
    """The receiving side: becomes readable with every signal."""

    def __init__(self, home: Path, node: str, folder: str = FOLDER) -> None:
        self._path = home / folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', node)}.sock"
        self._socket: socket.socket | None = None

    def open(self) -> int | None:
        """Bind the socket, replacing one left by a killed process.

        Return its descriptor, or None if that fails.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            with _address(self._path) as address:
                self._socket.bind(address)
        except (OSError, AttributeError) as exc:
            logger.warning("wake-up socket not opened, polling instead path=%s reason=%s", self._path, exc)
            self.close()
            return None
        return self._socket.fileno()

    @property
    def descriptor(self) -> int | None:
        """Descriptor of the open socket; None: not open."""
        return self._socket.fileno() if self._socket is not None else None

    def drain(self) -> None:
        """Read all pending signals."""
        with suppress(OSError):
            while self._socket is not None and self._socket.recv(1):
                pass

    def close(self) -> None:
        """Close the socket; its file stays, as it may belong to another process by now."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """Yield the path, or one through a descriptor of its folder if it is too long for an address (Linux)."""
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
