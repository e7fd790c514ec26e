"""Dispatch client: asynchronous calls to executors, with little CPU per call and reused connections.

Repeats no request but one refused for its token. Idle connections are closed before any known executor
closes them (Node after 5 s), so that a reused one is rarely dead. The console and the monitors use
``gateway``.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

from app.clock import elapsed_s
from app.domain.executors.networks import DEFAULT_PORTS
from app.domain.runs.trace_templates import NAME_UNKNOWN, NO_ANSWER, NO_CONNECTION, fill
from app.errors import InvalidInput
from app.executors.calls import LACKS, CallOutcome, Delivery, Peer, is_to_repeat, prepare, reason_of
from app.executors.connection import Answer, Broken, Connection
from app.executors.names import Names
from app.settings.config import Network
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.protocol import Reply

logger = logging.getLogger(__name__)

#: an idle connection is closed after this
KEEP_ALIVE_S = 3.0
#: a response may end this much after the timeout if connecting took long
LATE_S = 1.0
#: with more open connections than this, one that becomes idle is closed at once
KEPT_MAX = 512
#: cached request heads, and boot ids of executors
KNOWN_CALLS = 4_096
#: cached parsed responses, since nearly all are equal; longer responses and headers are not cached
KNOWN_ANSWERS = 256
KNOWN_ANSWER_MAX = 256
#: period of the log line that this host lacks files or memory
LACK_LOGGED_S = 60.0


class _Origin(NamedTuple):
    """Target of a connection."""

    secure: bool
    host: str
    port: int


class _NotConnected(Exception):
    """No connection was made, so no byte of the request was sent."""

    def __init__(self, reason: str, delivery: Delivery = Delivery.NO) -> None:
        super().__init__(reason)
        self.delivery = delivery


class DispatchClient:
    """Asynchronous client of executors; create, use and close it in one event loop."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        self._networks = networks
        self._names = Names(networks)
        self._prepare = lru_cache(KNOWN_CALLS)(self._prepare_call)
        self._idle: dict[_Origin, list[Connection]] = {}
        self._open: dict[Connection, _Origin] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._lack_logged_at: float | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._sweep is not None:
            self._sweep.cancel()
        self._names.close()
        for connection in list(self._open):
            connection.close()
        await asyncio.sleep(0)  # the transports end in the loop's next round

    async def call(self, peer: Peer, action: str, content: bytes, *, timeout_s: float) -> CallOutcome:
        """Call once with a JSON body; never raises for failures of the executor or the network.

        A call refused for its token is repeated with the token before, within the same timeout.
        """
        outcome = await self._call(peer, action, content, timeout_s)
        left_s = timeout_s - outcome.took_ms / 1000
        if not is_to_repeat(peer, outcome.reply) or left_s <= 0:
            return outcome
        return await self._call(peer.with_former_token(), action, content, left_s)

    def start(
        self,
        peer: Peer,
        action: str,
        content: bytes,
        *,
        timeout_s: float,
        on_outcome: Callable[[CallOutcome], object],
    ) -> bool:
        """Call without a task, over an idle connection; False: there is none, and nothing was sent.

        ``on_outcome`` gets the outcome in a later round of the loop; a refused token is not tried again.
        """
        start_s = time.monotonic()
        try:
            origin, head = self._prepare(peer, action)
        except InvalidInput:
            return False
        connection = self._take(origin)
        if connection is None:
            return False

        def on_answer(result: Answer | Exception) -> None:
            self._put_back(origin, connection)
            on_outcome(_outcome(result, start_s))

        connection.start(_request(head, content), self._loop.time() + timeout_s, on_answer)
        return True

    async def _call(self, peer: Peer, action: str, content: bytes, timeout_s: float) -> CallOutcome:
        start_s = time.monotonic()
        try:
            origin, head = self._prepare(peer, action)
            answer = await self._exchange(origin, _request(head, content), timeout_s)
        except InvalidInput as exc:
            return _failure(Delivery.NO, exc.message, start_s)
        except _NotConnected as exc:
            return _failure(exc.delivery, str(exc), start_s)
        except (Broken, TimeoutError, OSError) as exc:
            return _outcome(exc, start_s)
        return _outcome(answer, start_s)

    def _prepare_call(self, peer: Peer, action: str) -> tuple[_Origin, bytes]:
        """Check an address; return its origin and the request head up to the length. Raises InvalidInput."""
        url, headers = prepare(peer, action, self._networks)
        origin = _Origin(url.scheme == "https", url.hostname or "", url.port or DEFAULT_PORTS[url.scheme])
        lines = (
            f"POST {url.path} HTTP/1.1",
            f"Host: {url.netloc}",
            *(f"{name}: {text}" for name, text in headers.items()),
            "Connection: keep-alive",
            "Content-Length: ",
        )
        return origin, "\r\n".join(lines).encode("latin-1")

    async def _exchange(self, origin: _Origin, request: bytes, timeout_s: float) -> Answer:
        latest, start_s = self._loop.time() + timeout_s + LATE_S, elapsed_s()
        connection = self._take(origin) or await self._connect(origin, timeout_s)
        if elapsed_s() - start_s > timeout_s + LATE_S:  # suspended or stopped: another node may have the run
            connection.close()
            raise _NotConnected(NO_CONNECTION)
        answer = await connection.exchange(request, min(self._loop.time() + timeout_s, latest))
        self._put_back(origin, connection)
        return answer

    def _put_back(self, origin: _Origin, connection: Connection) -> None:
        """Keep a connection whose exchange has ended, if another may follow."""
        if connection.usable and len(self._open) <= KEPT_MAX:
            self._idle.setdefault(origin, []).append(connection)
            if self._sweep is None:
                self._sweep = self._loop.call_later(KEEP_ALIVE_S, self._drop_idle)
        else:
            connection.close()

    def _take(self, origin: _Origin) -> Connection | None:
        """Return the idle connection used last, if it is fresh enough."""
        idle, now = self._idle.get(origin), elapsed_s()
        while idle:
            connection = idle.pop()
            if connection.usable and now - connection.idle_since < KEEP_ALIVE_S:
                return connection
            connection.close()
        return None

    def _drop_idle(self) -> None:
        """Close the connections that have been idle for too long."""
        now = elapsed_s()
        for origin, connections in list(self._idle.items()):
            fresh = [connection for connection in connections if now - connection.idle_since < KEEP_ALIVE_S]
            for connection in connections[: len(connections) - len(fresh)]:  # sorted, longest idle first
                connection.close()
            self._idle[origin] = fresh
            if not fresh:
                del self._idle[origin]
        self._sweep = self._loop.call_later(1, self._drop_idle) if self._idle else None

    def _drop(self, connection: Connection) -> None:
        origin = self._open.pop(connection, None)
        idle = self._idle.get(origin, []) if origin else []
        if connection in idle:
            idle.remove(connection)

    async def _connect(self, origin: _Origin, timeout_s: float) -> Connection:
        """Connect to the first address of the host that accepts; each gets its share of the time.

        Raises _NotConnected.
        """
        until = self._loop.time() + timeout_s
        try:
            async with asyncio.timeout_at(until):
                hosts = await self._names.find(origin.host, origin.port)
            for number, host in enumerate(hosts):
                share_s = (until - self._loop.time()) / (len(hosts) - number)
                try:
                    async with asyncio.timeout(share_s):
                        return await self._connect_to(origin, host)
                except OSError as exc:  # TimeoutError is an OSError too
                    if exc.errno in LACKS:
                        raise
                    self._names.put_last(origin.host, origin.port, host)
                    if number == len(hosts) - 1:
                        raise
        except TimeoutError as exc:
            raise _NotConnected(NO_CONNECTION) from exc
        except (OSError, ValueError) as exc:
            if isinstance(exc, OSError) and exc.errno in LACKS:
                self._log_lack(exc)
                raise _NotConnected(str(exc), Delivery.UNTRIED) from exc
            raise _NotConnected(reason_of(exc, origin.host)) from exc
        raise _NotConnected(fill(NAME_UNKNOWN, host=origin.host))

    async def _connect_to(self, origin: _Origin, host: str) -> Connection:
        """Open a connection; close all idle ones first if this host lacks files or memory for it."""
        try:
            return await self._open_connection(origin, host)
        except OSError as exc:
            if exc.errno not in LACKS or not self._idle:
                raise
        for connection in [connection for connections in self._idle.values() for connection in connections]:
            connection.close()
        await asyncio.sleep(0)  # the transports end in the loop's next round
        return await self._open_connection(origin, host)

    def _log_lack(self, error: OSError) -> None:
        """Log once a minute that this host lacks files or memory: runs are late until it has them."""
        now = elapsed_s()
        if self._lack_logged_at is None or now - self._lack_logged_at > LACK_LOGGED_S:
            self._lack_logged_at = now
            logger.error("no connection opened, limit of this host error=%s open=%s", error, len(self._open))

    async def _open_connection(self, origin: _Origin, host: str) -> Connection:
        _, connection = await self._loop.create_connection(
            lambda: Connection(self._drop),
            host,
            origin.port,
            ssl=_tls() if origin.secure else None,
            server_hostname=origin.host if origin.secure else None,
        )
        self._open[connection] = origin
        return connection


#: replies are only read, so equal responses can share one
_parse_known = lru_cache(KNOWN_ANSWERS)(Reply.parse)


def _boot_id(capabilities: str) -> str:
    return Capabilities.from_header(capabilities).boot_id


_known_boot_id = lru_cache(KNOWN_CALLS)(_boot_id)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _request(head: bytes, content: bytes) -> bytes:
    return b"%b%d\r\n\r\n%b" % (head, len(content), content)


def _outcome(result: Answer | Exception, start_s: float) -> CallOutcome:
    """Return the outcome of an exchange that began at ``start_s``, in monotonic seconds."""
    if isinstance(result, Exception):
        reason = NO_ANSWER if isinstance(result, TimeoutError) else reason_of(result, None)
        return _failure(Delivery.PERHAPS, reason, start_s)
    find_boot_id = _known_boot_id if len(result.capabilities) < KNOWN_ANSWER_MAX else _boot_id
    parse = _parse_known if len(result.content) < KNOWN_ANSWER_MAX else Reply.parse
    reply, boot_id = parse(result.status, result.content), find_boot_id(result.capabilities)
    return CallOutcome(Delivery.ANSWERED, reply, "", _since(start_s), boot_id)


def _since(start_s: float) -> int:
    return round((time.monotonic() - start_s) * 1000)


def _failure(delivery: Delivery, reason: str, start_s: float) -> CallOutcome:
    return CallOutcome(delivery, None, reason, _since(start_s))
