"""Gateway: blocking calls to executors, for the console and the monitors. Dispatch uses ``dispatch_client``.

The address is checked before each call and the peer again once connected. Redirects and the environment's
proxies are ignored; size and duration of a response are limited; there is one attempt.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from app.config import Network
from app.domain.texts import N_
from app.domain.trace_templates import NAME_OUTSIDE, NO_ANSWER, NO_CONNECTION, fill
from app.errors import ExecutorUnreachable, InvalidInput
from app.executors.addresses import may_connect
from app.executors.calls import LOG_REPLY_MAX, REPLY_MAX, Peer, prepare, reason_of
from executor_client.lenient_json import dump_json
from executor_client.protocol import JobRequest, LogRequest, LogResult, Reply

#: seconds for a whole call, and for /log
CALL_TIMEOUT_S = 5.0
LOG_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 3.0


class Gateway:
    """Calls executors; one instance per process, thread-safe."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks

    def beat(self, peer: Peer, *, timeout_s: float = CALL_TIMEOUT_S) -> Reply:
        """Probe whether the executor is alive. Raises ExecutorUnreachable."""
        return self._call(peer, "beat", {}, limit=REPLY_MAX, timeout_s=timeout_s)

    def idle_beat(self, peer: Peer, job_id: int, *, timeout_s: float = CALL_TIMEOUT_S) -> Reply:
        """Probe whether a job is idle there. Raises ExecutorUnreachable."""
        return self._call(
            peer, "idleBeat", JobRequest(job_id).to_wire(), limit=REPLY_MAX, timeout_s=timeout_s
        )

    def kill(self, peer: Peer, job_id: int) -> Reply:
        """Request the end of a job's run and queued runs. Raises ExecutorUnreachable."""
        return self._call(
            peer, "kill", JobRequest(job_id).to_wire(), limit=REPLY_MAX, timeout_s=CALL_TIMEOUT_S
        )

    def read_log(self, peer: Peer, request: LogRequest, *, timeout_s: float = LOG_TIMEOUT_S) -> LogResult:
        """Read a piece of a run's log. Raises ExecutorUnreachable, also if the executor refuses."""
        reply = self._call(peer, "log", request.to_wire(), limit=LOG_REPLY_MAX, timeout_s=timeout_s)
        if reply.code != requests.codes.ok:
            raise ExecutorUnreachable(peer.address, reply.msg or f"code {reply.code}")
        return LogResult.from_wire(reply.content, from_line_num=request.from_line_num)

    def _call(self, peer: Peer, action: str, body: dict[str, Any], *, limit: int, timeout_s: float) -> Reply:
        until = time.monotonic() + timeout_s
        guard = _ConnectionGuard(self._networks)
        try:
            url, headers = prepare(peer, action, self._networks)
            with guard.cut_after(timeout_s), _session(guard) as http:
                response = http.post(
                    url.geturl(),
                    data=dump_json(body),
                    headers=headers,
                    timeout=(min(CONNECT_TIMEOUT_S, timeout_s), timeout_s),
                    allow_redirects=False,
                    stream=True,
                )
                return Reply.parse(response.status_code, _read(response, limit, until))
        except InvalidInput as exc:
            raise ExecutorUnreachable(peer.address, exc.message) from exc
        except (requests.RequestException, OSError) as exc:
            late = time.monotonic() >= until and not isinstance(exc, requests.ConnectTimeout)
            raise ExecutorUnreachable(peer.address, NO_ANSWER if late else _reason(exc, peer)) from exc


def _read(response: requests.Response, limit: int, until: float) -> bytes:
    parts, size = [], 0
    for part in response.iter_content(16 * 1024):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise requests.RequestException(N_("the answer is longer than %(limit)s bytes", limit=limit))
    if time.monotonic() >= until:  # a response without a length ends where the connection was cut
        raise requests.Timeout
    return b"".join(parts)


def _reason(error: Exception, peer: Peer) -> str:
    if isinstance(error, requests.ConnectTimeout):
        return NO_CONNECTION
    if isinstance(error, requests.Timeout):
        return NO_ANSWER
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return reason_of(cause, urlsplit(peer.address).hostname)


class _ConnectionGuard:
    """Guards the connections of one call: allowed peers only, cut when the time is up.

    Socket timeouts apply to each read; only the cut limits a response that arrives byte by byte.
    """

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._sockets: list[socket.socket] = []
        self._is_cut = False

    def check(self, connection: socket.socket) -> socket.socket:
        """Close a connection to a forbidden peer before a byte is sent: a name may resolve to anything."""
        peer = connection.getpeername()[0]
        if not may_connect(peer, self._networks):
            connection.close()
            raise OSError(fill(NAME_OUTSIDE, peer=peer))
        return self.register(connection)

    def register(self, connection: socket.socket) -> socket.socket:
        """Register a connection to be cut; cut it at once if the time is up."""
        self._sockets.append(connection)
        if self._is_cut:
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
        self._is_cut = True
        for connection in self._sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _session(guard: _ConnectionGuard) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    adapter = _CheckedAdapter(guard)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


class _CheckedAdapter(HTTPAdapter):
    """Adapter that passes its connections to a guard."""

    def __init__(self, guard: _ConnectionGuard) -> None:
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
