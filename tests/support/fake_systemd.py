"""Stand-in for systemd: an abstract socket for the notifications of one program."""

import secrets
import socket
import threading
from types import TracebackType
from typing import Self


class FakeSystemd:
    """Collects notifications in ``states``; ``environ`` is for the program."""

    def __init__(self, watchdog_s: float = 0) -> None:
        name = f"xxl-job-test-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name)
        self.states: list[str] = []
        self._thread = threading.Thread(target=self._read, name="fake-systemd", daemon=True)
        self._thread.start()
        self.environ = {"NOTIFY_SOCKET": "@" + name}
        if watchdog_s:
            self.environ["WATCHDOG_USEC"] = str(int(watchdog_s * 1_000_000))

    def _read(self) -> None:
        while state := self._socket.recv(4096).decode():
            self.states.append(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
