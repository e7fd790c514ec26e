"""The one way out to executors, asynchronous (aiohttp): for dispatch, 5 times cheaper a call than requests.

A request is never repeated by this layer. Idle connections are dropped before any known executor drops them (Node after 5 s),
so that a reused one is rarely a dead one.
"""

import asyncio
import errno
import socket
import time
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from app.config import Network
from app.errors import InvalidInput
from app.executors.addresses import check_address, is_allowed, join
from app.executors.gateway import Peer
from app.executors.replies import REPLY_MAX, CallOutcome, Delivered
from executor_client.lenient_json import dump_json
from executor_client.protocol import APPNAME_HEADER, CAPABILITIES_HEADER, CONTENT_TYPE, TOKEN_HEADER, Capabilities, Reply

#: an idle connection is closed after so long
KEEP_ALIVE_S = 3.0


class DispatchClient:
    """Calls executors from an event loop; make it and close it there."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._approved: set[str] = set()
        connector = aiohttp.TCPConnector(
            limit=0,  # the lanes hold back, not the pool
            keepalive_timeout=KEEP_ALIVE_S,
            resolver=_CheckedResolver(networks),
            use_dns_cache=True,
            ttl_dns_cache=10,
        )
        self._http = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def call(self, peer: Peer, action: str, body: dict[str, Any], *, timeout_s: float) -> CallOutcome:
        """Call once; never raises for what an executor or a network can do."""
        started = time.monotonic()
        try:
            if peer.address not in self._approved:
                check_address(peer.address, self._networks)
                self._approved.add(peer.address)
            status, content, boot_id = await self._post(peer, action, body, timeout_s)
        except InvalidInput as exc:
            return _failed(Delivered.NO, exc.message, started)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as exc:
            return _failed(Delivered.NO, _reason(exc), started)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            return _failed(Delivered.PERHAPS, _reason(exc), started)
        return CallOutcome(Delivered.ANSWERED, Reply.parse(status, content), "", _since(started), boot_id)

    async def _post(self, peer: Peer, action: str, body: dict[str, Any], timeout_s: float) -> tuple[int, bytes, str]:
        headers = {"Content-Type": CONTENT_TYPE, TOKEN_HEADER: peer.token, APPNAME_HEADER: peer.app_name}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=timeout_s, sock_read=timeout_s)
        async with (
            asyncio.timeout(timeout_s + 1),
            self._http.post(
                join(peer.address, action), data=dump_json(body), headers=headers, timeout=timeout, allow_redirects=False
            ) as response,
        ):
            content = await _read_bounded(response)
            return response.status, content, Capabilities.from_header(response.headers.get(CAPABILITIES_HEADER)).boot_id


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    """Read the answer up to REPLY_MAX; what is longer is cut."""
    content = b""
    while len(content) <= REPLY_MAX and (part := await response.content.read(REPLY_MAX)):
        content += part
    if len(content) > REPLY_MAX:
        response.close()
    return content[:REPLY_MAX]


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _failed(delivered: Delivered, reason: str, started: float) -> CallOutcome:
    return CallOutcome(delivered, None, reason, _since(started))


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "no connection in time"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed before an answer came"
    return (str(error) or type(error).__name__)[:300]


class _CheckedResolver(AbstractResolver):
    """Resolves names to allowed addresses only; the connection goes to exactly what was checked."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        allowed = [entry for entry in found if is_allowed(ip_address(entry["host"].partition("%")[0]), self._networks)]
        if not allowed:
            raise OSError(errno.EACCES, f"the name {host} leads outside the networks of XXL_JOB_EXECUTOR_NETWORKS")
        return allowed

    async def close(self) -> None:
        await self._inner.close()
