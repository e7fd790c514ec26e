"""Name resolution for dispatch: cached results, one look-up per name at a time, allowed addresses only."""

import asyncio
import errno
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from app.domain.runs.trace_templates import NAME_OUTSIDE, fill
from app.executors.addresses import may_connect
from app.executors.calls import LACKS, reason_of
from app.settings.config import Network

#: cached addresses are refreshed after this; cached failures, after this
KNOWN_S = 10.0
UNKNOWN_S = 2.0
#: cached addresses up to this age are used while they are refreshed
STALE_S = 120.0
#: cached names
NAMES_MAX = 4_096
#: look-ups at the same time: a resolver of the event loop would have two threads for all names
LOOKUPS_MAX = 32


@dataclass(slots=True)
class _LookupResult:
    """Last result of a name, with its loop time; ``error``: arguments of the error of a failed look-up."""

    at: float
    hosts: list[str] = field(default_factory=list)
    error: tuple[Any, ...] = ()


def _resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver, which may hang for long; raises OSError and UnicodeError."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        # without a free file descriptor resolvers fail with errors of their own, as for an unknown name
        os.close(os.open(os.devnull, os.O_RDONLY))
        raise
    return [str(entry[4][0]) for entry in entries]


class Names:
    """Cached resolver of host names; create, use and close it in one event loop."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._results: dict[tuple[str, int], _LookupResult] = {}
        self._lookups: dict[tuple[str, int], asyncio.Task[_LookupResult]] = {}
        self._resolvers = ThreadPoolExecutor(LOOKUPS_MAX, "resolver")

    def close(self) -> None:
        """Cancel the look-ups in progress; threads that hang are left behind."""
        for task in self._lookups.values():
            task.cancel()
        self._resolvers.shutdown(wait=False, cancel_futures=True)

    async def find(self, host: str, port: int) -> list[str]:
        """Return the allowed addresses of a host, best first, to connect to exactly these. Raises OSError."""
        try:
            ip_address(host)
        except ValueError:
            pass
        else:
            return [host]  # checked by check_address
        result = await self._find_result(host, port)
        if result.error:
            raise OSError(*result.error)
        addresses = [address for address in result.hosts if may_connect(address, self._networks)]
        if not addresses:
            raise OSError(errno.EACCES, fill(NAME_OUTSIDE, peer=", ".join(result.hosts)))
        return addresses

    def put_last(self, host: str, port: int, address: str) -> None:
        """Move an address that did not accept a connection behind the others of its name."""
        result = self._results.get((host, port))
        if result is not None and address in result.hosts:
            result.hosts.remove(address)
            result.hosts.append(address)

    async def _find_result(self, host: str, port: int) -> _LookupResult:
        """Return the cached result, or that of the one look-up in progress.

        One look-up per name, and LOOKUPS_MAX threads, so that hanging ones do not delay the others.
        """
        name = host, port
        now = asyncio.get_running_loop().time()
        result = self._results.get(name)
        age_s = now - result.at if result is not None else STALE_S
        if result is not None and age_s < (UNKNOWN_S if result.error else KNOWN_S):
            return result
        if name not in self._lookups:
            self._lookups[name] = asyncio.get_running_loop().create_task(self._look_up(host, port))
        if result is not None and not result.error and age_s < STALE_S:
            return result
        return await asyncio.shield(self._lookups[name])

    async def _look_up(self, host: str, port: int) -> _LookupResult:
        loop = asyncio.get_running_loop()
        before, is_lack = self._results.get((host, port)), False
        try:
            hosts = list(dict.fromkeys(await loop.run_in_executor(self._resolvers, _resolve, host, port)))
            order = {address: rank for rank, address in enumerate(before.hosts)} if before is not None else {}
            result = _LookupResult(loop.time(), sorted(hosts, key=lambda address: order.get(address, -1)))
        except (OSError, UnicodeError, RuntimeError) as exc:  # RuntimeError: no thread can be started
            is_lack = isinstance(exc, OSError) and exc.errno in LACKS
            result = _LookupResult(loop.time(), error=exc.args if is_lack else (reason_of(exc, host),))
        finally:
            del self._lookups[host, port]
        if is_lack and before is not None and before.hosts:
            return result  # the hosts stay known, up to STALE_S
        if len(self._results) >= NAMES_MAX:
            del self._results[next(iter(self._results))]
        self._results[host, port] = result
        return result
