"""Pool of API clients, whose connections stay open for the next call."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from executor_client.api.client import ApiClient
from executor_client.api.errors import ApiError


class ClientPool:
    """Pool of clients, whose connections stay open for the next call; it grows with concurrent calls."""

    def __init__(self, open_client: Callable[[], ApiClient]) -> None:
        self._open = open_client
        self._lock = threading.Lock()
        self._free: list[ApiClient] = []
        self._process = os.getpid()
        self._is_closed = False

    @contextmanager
    def client(self) -> Iterator[ApiClient]:
        """Lend a client to the calling thread; raise ApiError if the pool is closed."""
        client = self._take()
        try:
            yield client
        finally:
            self._return(client)

    def close(self) -> None:
        """Close the connections; those in use are closed at the end of their calls."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for client in free:
            client.close()

    def _take(self) -> ApiClient:
        with self._lock:
            if self._is_closed:
                raise ApiError("the client is closed")
            if self._process != os.getpid():  # after a fork: the parent still uses these connections
                self._process, self._free = os.getpid(), []
            if self._free:
                return self._free.pop()
        return self._open()

    def _return(self, client: ApiClient) -> None:
        with self._lock:
            if not self._is_closed:
                self._free.append(client)
                return
        client.close()
