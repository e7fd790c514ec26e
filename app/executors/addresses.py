"""Executor addresses: check of the addresses that may be called, URLs of calls."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from app.domain.executors.networks import DEFAULT_PORTS, is_allowed, is_metadata_name
from app.domain.runs.trace_templates import (
    ADDRESS_INVALID,
    ADDRESS_LOW_PORT,
    ADDRESS_MORE_PARTS,
    ADDRESS_NO_HOST,
    ADDRESS_NOT_HTTP,
    ADDRESS_OTHER_CHARACTERS,
    ADDRESS_OUTSIDE,
    ADDRESS_REFUSED,
    ADDRESS_TOO_LONG,
    fill,
)
from app.errors import InvalidInput
from app.settings.config import Network

#: length of the column that stores an address
ADDRESS_MAX = 255
#: web ports; other ports must be unprivileged
LOW_PORTS = frozenset({80, 443})
FIRST_FREE_PORT = 1024
#: start of a query or fragment, plain or percent-encoded: an action joined to the URL would become part of it
_ENDS_THE_PATH = re.compile(r"[?#]|%3f|%23", re.IGNORECASE)
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*\.?")


def check_address(address: str, networks: tuple[Network, ...]) -> None:
    """Raise InvalidInput if an address may not be called."""
    reason = refusal(address, networks)
    if reason is not None:
        raise InvalidInput("addressList", fill(ADDRESS_REFUSED, address=address[:ADDRESS_MAX], reason=reason))


def refusal(address: str, networks: tuple[Network, ...]) -> str | None:
    """Return why an address may not be called, or None.

    It must be the base URL of an executor inside the allowed networks. Host names are checked as text only;
    the addresses they resolve to are checked at every call.
    """
    if len(address) > ADDRESS_MAX:
        return fill(ADDRESS_TOO_LONG, limit=ADDRESS_MAX)
    if not re.fullmatch(r"[!-~]*", address.strip()) or re.search(r"[<>\"'`\\{}|^,]", address):
        return ADDRESS_OTHER_CHARACTERS
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ADDRESS_INVALID
    if parts.scheme not in DEFAULT_PORTS:
        return ADDRESS_NOT_HTTP
    if parts.username is not None or parts.password is not None or _ENDS_THE_PATH.search(address):
        return ADDRESS_MORE_PARTS
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    if port not in LOW_PORTS and port < FIRST_FREE_PORT:
        return fill(ADDRESS_LOW_PORT, port=port, first=FIRST_FREE_PORT)
    return _host_refusal(host, networks)


def _host_refusal(host: str, networks: tuple[Network, ...]) -> str | None:
    try:
        literal = ip_address(host)
    except ValueError:
        is_name = _HOST_NAME.fullmatch(host) and not re.fullmatch(r"[\d.]+|0x[0-9a-fA-F.x]+", host)
        if not is_name:
            return ADDRESS_NO_HOST
        is_inside = not is_metadata_name(host)
    else:
        is_inside = is_allowed(literal, networks)
    return None if is_inside else ADDRESS_OUTSIDE


def may_connect(peer: str, networks: tuple[Network, ...]) -> bool:
    """Whether a connection to an IP address, perhaps with a zone (``fe80::1%eth0``), is allowed."""
    return is_allowed(ip_address(peer.partition("%")[0]), networks)


def storable(address: str | None) -> str | None:
    """Return an address; None for one too long for its columns, which is refused instead of called."""
    return None if address is None or len(address) > ADDRESS_MAX else address


def join(address: str, action: str) -> str:
    """Return the URL of an action, with exactly one slash between address and action."""
    return f"{address.strip().rstrip('/')}/{action}"
