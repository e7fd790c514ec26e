"""What host names lead to, for dispatch: each name asked for once at a time, remembered a while, allowed addresses only."""

import asyncio
import errno
import socket
from dataclasses import dataclass, field
from ipaddress import ip_address

from app.config import Network
from app.domain.trace_templates import NAME_OUTSIDE, fill
from app.executors.addresses import may_connect
from app.executors.calls import reason_of

#: what a name leads to is asked again after so long; that it leads nowhere, after so long
KNOWN_S = 10.0
UNKNOWN_S = 2.0
#: while that takes, an older answer is used, up to this age
STALE_S = 120.0
#: names remembered
NAMES_MAX = 4_096


@dataclass(slots=True)
class _Known:
    """The last answer about a name, and when it came by the loop's clock; ``error`` where there was none."""

    at: float
    hosts: list[str] = field(default_factory=list)
    error: str = ""


class Names:
    """Looks names up; make it and close it in an event loop."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self._known: dict[tuple[str, int], _Known] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[_Known]] = {}

    def close(self) -> None:
        """Give up what is being looked up."""
        for task in self._asking.values():
            task.cancel()

    async def find(self, host: str, port: int) -> list[str]:
        """Return the allowed addresses of a host, best first; the connection goes to exactly what was checked. Raises OSError."""
        try:
            ip_address(host)
        except ValueError:
            pass
        else:
            return [host]  # check_address has seen it
        known = await self._look_up(host, port)
        if known.error:
            raise OSError(known.error)
        allowed = [address for address in known.hosts if may_connect(address, self._networks)]
        if not allowed:
            raise OSError(errno.EACCES, fill(NAME_OUTSIDE, peer=", ".join(known.hosts)))
        return allowed

    def put_last(self, host: str, port: int, address: str) -> None:
        """Try an address of a name that takes no connections after its others from now on."""
        known = self._known.get((host, port))
        if known is not None and address in known.hosts:
            known.hosts.remove(address)
            known.hosts.append(address)

    async def _look_up(self, host: str, port: int) -> _Known:
        """Return the remembered answer, or that of the one look-up under way: a name that hangs must not occupy every thread."""
        name = host, port
        now = asyncio.get_running_loop().time()
        known = self._known.get(name)
        age_s = now - known.at if known is not None else STALE_S
        if known is not None and age_s < (UNKNOWN_S if known.error else KNOWN_S):
            return known
        if name not in self._asking:
            self._asking[name] = asyncio.get_running_loop().create_task(self._ask(host, port))
        if known is not None and not known.error and age_s < STALE_S:
            return known
        return await asyncio.shield(self._asking[name])

    async def _ask(self, host: str, port: int) -> _Known:
        loop = asyncio.get_running_loop()
        before = self._known.get((host, port))
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
            order = (
                {address: place for place, address in enumerate(before.hosts)} if before is not None else {}
            )
            known = _Known(loop.time(), sorted(hosts, key=lambda address: order.get(address, -1)))
        except (OSError, UnicodeError) as exc:
            known = _Known(loop.time(), error=reason_of(exc, host))
        finally:
            del self._asking[host, port]
        if len(self._known) >= NAMES_MAX:
            del self._known[next(iter(self._known))]
        self._known[host, port] = known
        return known
