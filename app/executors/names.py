"""Name resolution for dispatch: cached, one look-up per name at a time, allowed addresses only."""

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
#: addresses up to this age are used while they are refreshed
STALE_S = 120.0
#: cached names
NAMES_MAX = 4_096
#: look-ups at the same time: a resolver of the event loop would have two threads for all names
LOOKUPS_MAX = 32


@dataclass(slots=True)
class _Known:
    """Last result for a name, with its loop time; ``error``: arguments of the error if the look-up failed."""

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
    """Looks up names; create, use and close it in one event loop."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._known: dict[tuple[str, int], _Known] = {}
        self._lookups: dict[tuple[str, int], asyncio.Task[_Known]] = {}
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
        known = await self._find_known(host, port)
        if known.error:
            raise OSError(*known.error)
        allowed = [address for address in known.hosts if may_connect(address, self._networks)]
        if not allowed:
            raise OSError(errno.EACCES, fill(NAME_OUTSIDE, peer=", ".join(known.hosts)))
        return allowed

    def put_last(self, host: str, port: int, address: str) -> None:
        """Move an address that did not accept a connection behind the others of its name."""
        known = self._known.get((host, port))
        if known is not None and address in known.hosts:
            known.hosts.remove(address)
            known.hosts.append(address)

    async def _find_known(self, host: str, port: int) -> _Known:
        """Return the cached result, or that of the one look-up in progress.

        One look-up per name, and LOOKUPS_MAX threads, so that hanging ones do not delay the others.
        """
        name = host, port
        now = asyncio.get_running_loop().time()
        known = self._known.get(name)
        age_s = now - known.at if known is not None else STALE_S
        if known is not None and age_s < (UNKNOWN_S if known.error else KNOWN_S):
            return known
        if name not in self._lookups:
            self._lookups[name] = asyncio.get_running_loop().create_task(self._look_up(host, port))
        if known is not None and not known.error and age_s < STALE_S:
            return known
        return await asyncio.shield(self._lookups[name])

    async def _look_up(self, host: str, port: int) -> _Known:
        loop = asyncio.get_running_loop()
        before, is_lack = self._known.get((host, port)), False
        try:
            hosts = list(dict.fromkeys(await loop.run_in_executor(self._resolvers, _resolve, host, port)))
            order = {address: rank for rank, address in enumerate(before.hosts)} if before is not None else {}
            known = _Known(loop.time(), sorted(hosts, key=lambda address: order.get(address, -1)))
        except (OSError, UnicodeError, RuntimeError) as exc:  # or no thread can be started
            is_lack = isinstance(exc, OSError) and exc.errno in LACKS
            known = _Known(loop.time(), error=exc.args if is_lack else (reason_of(exc, host),))
        finally:
            del self._lookups[host, port]
        if is_lack and before is not None and before.hosts:
            return known  # the hosts stay known, up to STALE_S
        if len(self._known) >= NAMES_MAX:
            del self._known[next(iter(self._known))]
        self._known[host, port] = known
        return known
