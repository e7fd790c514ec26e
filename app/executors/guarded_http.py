"""Guarded HTTP: sessions of ``requests`` that connect to allowed peers only, within a total time and size."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from app.domain.runs.trace_templates import NAME_OUTSIDE, fill
from app.domain.text.texts import N_
from app.executors.addresses import may_connect
from app.settings.config import Network

SessionT = TypeVar("SessionT", bound="DirectSession")


class TooLong(requests.RequestException):
    """The body of a response is longer than the limit; ``start`` is what was read of it."""

    def __init__(self, limit: int, start: bytes) -> None:
        super().__init__(N_("the answer is longer than %(limit)s bytes", limit=limit))
        self.start = start


def read_bounded(response: requests.Response, limit: int, until: float) -> bytes:
    """Return the body of a streamed response; raises TooLong, and RequestException if it is too late."""
    parts, size = [], 0
    for part in response.iter_content(16 * 1024):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLong(limit, b"".join(parts))
    if time.monotonic() >= until:  # a response without a length ends where the connection was cut
        raise requests.Timeout
    return b"".join(parts)


class DirectSession(requests.Session):
    """Session that follows no redirect.

    ``requests`` reads the whole body of one and parses its URL, even if it is not to follow it.
    """

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return no target, so that no redirect is followed."""


class ConnectionGuard:
    """Guards the connections of one call: allowed peers only, cut when the time is up.

    Socket timeouts apply to each read; only the cut limits a response that arrives byte by byte.
    """

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        #: address of a peer that was refused, or empty
        self.refused_peer = ""
        self._sockets: list[socket.socket] = []
        #: whether the time limit has cut the connections
        self.is_cut = False

    def check(self, connection: socket.socket) -> socket.socket:
        """Close a connection to a forbidden peer before a byte is sent: a name may resolve to anything."""
        peer = connection.getpeername()[0]
        if not may_connect(peer, self._networks):
            connection.close()
            self.refused_peer = peer
            raise OSError(fill(NAME_OUTSIDE, peer=peer))
        return self.register(connection)

    def register(self, connection: socket.socket) -> socket.socket:
        """Register a connection to be cut; cut it at once if the time is up."""
        self._sockets.append(connection)
        if self.is_cut:
            self._cut()
        return connection

    @contextmanager
    def cut_after(self, timeout_s: float) -> Iterator[None]:
        """Cut all connections made inside the block after ``timeout_s``."""
        timer = threading.Timer(timeout_s, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        self.is_cut = True
        for connection in self._sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def guard_session(session: SessionT, guard: ConnectionGuard) -> SessionT:
    """Send all requests of a session by guarded connections, without proxies of the environment."""
    session.trust_env = False
    adapter = _CheckedAdapter(guard)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


class _CheckedAdapter(HTTPAdapter):
    """Adapter that passes its connections to a guard."""

    def __init__(self, guard: ConnectionGuard) -> None:
        self._guard = guard
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        guard = self._guard

        class CheckedHTTP(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return guard.check(super()._new_conn())

        class CheckedHTTPS(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return guard.check(super()._new_conn())

            def connect(self) -> None:
                super().connect()
                guard.register(self.sock)  # the TLS socket

        class HTTPPool(HTTPConnectionPool):
            ConnectionCls = CheckedHTTP

        class HTTPSPool(HTTPSConnectionPool):
            ConnectionCls = CheckedHTTPS

        self.poolmanager.pool_classes_by_scheme = {"http": HTTPPool, "https": HTTPSPool}
