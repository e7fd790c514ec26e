"""HTTP server: the executor's own waitress server."""

import errno
import socket
import threading
from collections.abc import Sequence
from typing import Any

import waitress.wasyncore

from executor_client.httpd.batching import BatchAnswer, BatchedEndpoints, BatchRequest
from executor_client.httpd.server import ConnectionLimits, create_http_server
from executor_client.mounting.wsgi import FORWARD_HEADERS, WsgiApp
from executor_client.service.answers import Service
from executor_client.service.endpoints import BODY_MAX_BYTES, RUN_PATHS, Request
from executor_client.wire.errors import StartRefused
from executor_client.wire.protocol import TOKEN_HEADER

#: an admin has at most 32 requests in flight to one address
SERVER_THREADS = 16
#: an idle connection is closed after this, as in XXL-JOB
IDLE_CONNECTION_S = 90
CLEANUP_INTERVAL_S = 10
CONNECTION_MAX = 1_000
#: most connections of one address: an admin is one, so half of all
LIMITS = ConnectionLimits(address_max=CONNECTION_MAX // 2)

_TOKEN = TOKEN_HEADER.upper().replace("-", "_")
_FORWARD_KEYS = frozenset(name.upper().replace("-", "_") for name in FORWARD_HEADERS)


class OwnServer:
    """The executor's own port."""

    def __init__(self, app: WsgiApp, host: str, port: int, batches: Sequence[BatchedEndpoints] = ()) -> None:
        """Bind; raise StartRefused with one line if that is impossible."""
        self._socket = bound_socket(host, port)
        self._channels: dict[int, Any] = {}
        self._stopping = threading.Event()
        self._server = create_http_server(
            app,
            LIMITS,
            map=self._channels,
            batches=batches,
            sockets=[self._socket],
            threads=SERVER_THREADS,
            connection_limit=CONNECTION_MAX,
            channel_timeout=IDLE_CONNECTION_S,
            cleanup_interval=CLEANUP_INTERVAL_S,
            max_request_body_size=BODY_MAX_BYTES,
            # These headers show that a request was forwarded; the peer is never taken from them.
            clear_untrusted_proxy_headers=False,
            ident=None,
        )
        self._thread = threading.Thread(target=self._serve, name="server", daemon=True)

    @property
    def port(self) -> int:
        """Listening port."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Serve in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port after the requests in flight have ended."""
        self._stopping.set()
        if self._thread.ident is None:
            self._close()
            return
        self._server.pull_trigger()
        self._thread.join(10)

    def abandon(self) -> None:
        """Close the copies of the port and its connections that a fork has made."""
        for channel in list(self._channels.values()):
            channel.socket.close()
        self._socket.close()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            waitress.wasyncore.loop(timeout=1, use_poll=True, map=self._channels, count=1)
        self._close()

    def _close(self) -> None:
        self._server.task_dispatcher.shutdown()
        waitress.wasyncore.close_all(self._channels)


def batched_runs(service: Service) -> BatchedEndpoints:
    """Return the endpoints that accept runs in batches; the service answers all other requests singly."""

    def answer(requests: list[BatchRequest]) -> list[BatchAnswer | None]:
        answers: list[BatchAnswer | None] = [None] * len(requests)
        endpoints = service.endpoints
        if endpoints is None:
            return answers
        direct = {
            index: Request(
                request.method, request.path, request.headers.get(_TOKEN, ""), request.peer, request.body
            )
            for index, request in enumerate(requests)
            if _FORWARD_KEYS.isdisjoint(request.headers)
        }
        for index, reply in zip(direct, endpoints.run_together([*direct.values()]), strict=True):
            if reply is not None:
                single = service.reply(reply)
                answers[index] = BatchAnswer(single.status, single.headers, single.body)
        return answers

    return BatchedEndpoints("runs", lambda path: path in RUN_PATHS, answer)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raise StartRefused with one line."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as exc:
        raise StartRefused(f"cannot listen on {host}:{port}: {exc.strerror}") from exc
    except UnicodeError as exc:
        raise StartRefused(f"cannot listen on {host}:{port}: not a host name") from exc
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as exc:
        listener.close()
        in_use = exc.errno == errno.EADDRINUSE
        reason = "the port is in use by another program" if in_use else exc.strerror
        raise StartRefused(f"cannot listen on {host}:{port}: {reason}") from exc
    return listener
