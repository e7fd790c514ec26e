"""HTTP server of console and executors: waitress with strict parsing and limits for each connection.

A request must be complete within a time limit, however slowly its bytes arrive, and one address gets only a
share of the connections. Idle connections are closed, the oldest first, when new ones need their place.
"""

import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import MultiSocketServer, TcpWSGIServer
from waitress.task import ErrorTask, Task, WSGITask

from executor_client.httpd.batching import (
    BatchAnswer,
    BatchDispatcher,
    BatchedEndpoints,
    BatchTask,
)
from executor_client.httpd.strict_parsing import StrictParser
from executor_client.wire.clock import monotonic_s

#: longest head of a request; Tomcat, which XXL-JOB runs on, allows 8 KiB
HEAD_MAX_BYTES = 64 * 1024
#: pipelined requests of a connection; parsing more of them would hold up all other connections
PIPELINED_MAX = 16
#: part of the connection limit that closing idle connections keeps free: one in 20
FREE_PART = 20
#: refused connections are logged once in this time
REFUSED_LOG_PERIOD_S = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a server's connections."""

    #: from the first byte of a request to the end of its head
    head_s: float = 30.0
    #: from the first byte of a request to its last; longer while its body arrives at ``body_bytes_per_s``
    request_s: float = 60.0
    body_bytes_per_s: int = 16 * 1024
    #: most connections of an IPv4 address or IPv6 /64 network; None: no limit, as all come from a proxy
    address_max: int | None = None
    #: a connection without a request for this long may be closed for a new one
    idle_s: float = 1.0

    def allowed_s(self, request: Any) -> float:
        """Return the seconds that an unfinished request may take."""
        if not request.headers_finished:
            return self.head_s
        return self.request_s + float(request.body_bytes_received) / self.body_bytes_per_s


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """Answer to a request that cannot be parsed; it quotes the request."""

    def execute(self) -> None:
        """Send the answer."""
        self.response_headers.append(("X-Content-Type-Options", "nosniff"))
        super().execute()


class LimitedChannel(HTTPChannel):  # type: ignore[misc]
    """Connection; ``since_s`` is when it was opened, its request began, or its last request ended."""

    error_task_class = RefusalTask

    def __init__(self, server: Any, sock: socket.socket, addr: Any, adj: Any, map: Any = None) -> None:
        super().__init__(server, sock, addr, adj, map=map)
        self.since_s = monotonic_s()
        self.origin = origin_of(addr[0])
        #: what a batched endpoint returned for the first waiting request; None: the application answers it
        self.outcome: BatchAnswer | None = None

    def parser_class(self, adj: Adjustments) -> StrictParser:
        """Return the parser of the next request."""
        parser = StrictParser(adj)
        if len(self.requests) >= PIPELINED_MAX:
            parser.refuse("Too many requests before the first answer")
        return parser

    def received(self, data: bytes) -> bool:
        """Take bytes of a request."""
        if self.request is None:
            self.since_s = monotonic_s()
        return bool(super().received(data))

    def service(self) -> None:
        """Answer a request, in a thread of the pool or of batched endpoints."""
        super().service()
        self.since_s = monotonic_s()

    def task_class(self, channel: HTTPChannel, request: Any) -> Task:
        """Return the task that answers a request."""
        outcome, self.outcome = self.outcome, None
        return WSGITask(channel, request) if outcome is None else BatchTask(channel, request, outcome)

    @property
    def is_idle(self) -> bool:
        """True if no request is being received or answered."""
        return not (self.requests or self.request or self.total_outbufs_len or self.will_close)

    def is_overdue(self, limits: ConnectionLimits, now_s: float) -> bool:
        """Return whether a request has taken too long to arrive."""
        if self.request is None or self.requests or self.total_outbufs_len:
            return False
        return now_s - self.since_s > limits.allowed_s(self.request)

    def is_quiet(self, now: float) -> bool:
        """Return whether nothing was sent or received for ``channel_timeout``; ``now``: epoch seconds."""
        return not self.requests and now - float(self.last_activity) > float(self.adj.channel_timeout)

    def cut(self) -> None:
        """Close the connection in the next pass of the loop, even if its client reads nothing."""
        self.will_close = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class LimitedServer(TcpWSGIServer):  # type: ignore[misc]
    """Listening socket and its connections."""

    channel_class = LimitedChannel

    def __init__(self, application: Any, limits: ConnectionLimits, *args: Any, **options: Any) -> None:
        self._limits = limits
        self._refusal_count = 0
        self._next_log_s = 0.0
        super().__init__(application, *args, **options)

    def readable(self) -> bool:
        """Return whether connections are accepted; make room for them first."""
        connection_max = self.adj.connection_limit - max(self.adj.connection_limit // FREE_PART, 1)
        if len(self._map) > connection_max:
            self._close_idle(self._channels(), len(self._map) - connection_max)
        return bool(super().readable())

    def accept(self) -> Any:
        """Accept a connection; None if there is none or its address has used up its share."""
        connection = super().accept()
        if connection is None or self._admits(connection[1][0]):
            return connection
        connection[0].close()
        return None

    def pull_trigger(self) -> None:
        """Wake the loop; once for the answers of a batch."""
        if not self.task_dispatcher.is_answering():
            super().pull_trigger()

    def maintenance(self, now: float) -> None:
        """Close overdue and quiet connections; called every ``cleanup_interval``."""
        now_s = monotonic_s()
        for channel in self._channels():
            if channel.is_overdue(self._limits, now_s) or channel.is_quiet(now):
                channel.cut()

    def _channels(self) -> list[LimitedChannel]:
        return [channel for channel in self._map.values() if isinstance(channel, LimitedChannel)]

    def _admits(self, address: str) -> bool:
        """Return whether an address may have one more connection; close its oldest idle one for it."""
        if self._limits.address_max is None:
            return True
        origin = origin_of(address)
        channels = [
            channel for channel in self._channels() if channel.origin == origin and not channel.will_close
        ]
        if len(channels) < self._limits.address_max or self._close_idle(channels, 1):
            return True
        self._log_refused(origin)
        return False

    def _close_idle(self, channels: list[LimitedChannel], count: int) -> bool:
        """Close the oldest idle connections; False if there is none."""
        before_s = monotonic_s() - self._limits.idle_s
        idle = [channel for channel in channels if channel.is_idle and channel.since_s <= before_s]
        for channel in sorted(idle, key=lambda channel: channel.since_s)[:count]:
            channel.cut()
        return bool(idle)

    def _log_refused(self, origin: str) -> None:
        self._refusal_count += 1
        now_s = monotonic_s()
        if now_s >= self._next_log_s:
            logger.warning(
                "connections refused address=%s connections_max=%s refused=%s",
                origin,
                self._limits.address_max,
                self._refusal_count,
            )
            self._refusal_count = 0
            self._next_log_s = now_s + REFUSED_LOG_PERIOD_S


def origin_of(address: str) -> str:
    """Return an IPv4 address itself, of an IPv6 address its /64 network."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))


def create_http_server(
    application: Callable[..., Iterable[bytes]],
    limits: ConnectionLimits,
    *,
    map: dict[int, Any] | None = None,
    batches: Sequence[BatchedEndpoints] = (),
    reserves: Sequence[Collection[str]] = (),
    **adjustments: Any,
) -> Any:
    """Bind and return a server; it serves by ``run()``, ``close()`` ends it.

    Requests of ``batches`` are answered together, all others by ``application`` in threads: one for each path
    of ``reserves``, given with all its spellings. ``adjustments`` are those of waitress. Raises OSError or
    ValueError if an address cannot be bound.
    """
    adj = Adjustments(max_request_header_size=HEAD_MAX_BYTES, **adjustments)
    channels: dict[int, Any] = {} if map is None else map
    dispatcher = BatchDispatcher(batches, reserves)
    dispatcher.set_thread_count(adj.threads)
    options: dict[str, Any] = {"map": channels, "dispatcher": dispatcher, "adj": adj}
    listens: list[dict[str, Any]] = [
        {
            "_sock": listener,
            "bind_socket": False,
            "sockinfo": (listener.family, listener.type, listener.proto, listener.getsockname()),
        }
        for listener in adj.sockets
    ] or [{"sockinfo": sockinfo} for sockinfo in adj.listen]
    servers = [LimitedServer(application, limits, **listen, **options) for listen in listens]
    if len(servers) == 1:
        return servers[0]
    addresses = [(server.effective_host, server.effective_port) for server in servers]
    return MultiSocketServer(channels, adj, addresses, dispatcher, servers[-1].log_info)
