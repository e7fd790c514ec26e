"""Database server that hangs: it accepts connections and never says a word."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class SilentDatabase:
    """Listening socket; what it has not accepted ends when it is closed."""

    listening: socket.socket
    _accepted: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"mysql+pymysql://xxl_job@127.0.0.1:{self.listening.getsockname()[1]}/xxl_job"

    def count_connections(self) -> int:
        """Return how many connections were opened so far."""
        with suppress(BlockingIOError):
            while True:
                self._accepted.append(self.listening.accept()[0])
        return len(self._accepted)

    def close(self) -> None:
        """End the connections, as a server does that is stopped."""
        for each in (self.listening, *self._accepted):
            each.close()


@contextmanager
def silent_database() -> Iterator[SilentDatabase]:
    """Open one on a free port."""
    silent = SilentDatabase(socket.create_server(("127.0.0.1", 0)))
    silent.listening.setblocking(False)
    try:
        yield silent
    finally:
        silent.close()
