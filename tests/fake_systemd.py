"""Stand-in for systemd: an abstract socket for the notifications of one program."""

import secrets
import socket
from types import TracebackType
from typing import Self


class FakeSystemd:
    """Collects notifications; ``environ`` is for the program."""

    def __init__(self, watchdog_s: float = 0) -> None:
        name = f"xxl-job-test-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name)
        self._socket.setblocking(False)
        self._states: list[str] = []
        self.environ = {"NOTIFY_SOCKET": "@" + name}
        if watchdog_s:
            self.environ["WATCHDOG_USEC"] = str(int(watchdog_s * 1_000_000))

    @property
    def states(self) -> list[str]:
        """Return all states received so far."""
        while True:
            try:
                self._states.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return [*self._states]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
