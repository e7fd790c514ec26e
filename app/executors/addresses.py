"""Which addresses may be called at all, and how a call's URL is made of one."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from app.config import Network
from app.domain.texts import N_
from app.errors import InvalidInput

IPAddress = IPv4Address | IPv6Address

#: length of the column an address is kept in
ADDRESS_MAX = 255
#: web ports; else only ports that need no privilege
LOW_PORTS = frozenset({80, 443})
FIRST_FREE_PORT = 1024
DEFAULT_PORTS = {"http": 80, "https": 443}
#: metadata services of clouds that lie inside private ranges (AWS, Google, Alibaba, Oracle); link-local ones are refused anyway
METADATA = frozenset(ip_address(text) for text in ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192"))
_HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")


def check_address(address: str, networks: tuple[Network, ...]) -> None:
    """Raise InvalidInput where an address is no base URL of an executor, or lies outside the allowed networks.

    A host name is only checked as text here: what it resolves to is checked at every call.
    """
    if len(address) > ADDRESS_MAX:
        raise _refusal(address, N_("it is longer than %(limit)s characters", limit=ADDRESS_MAX))
    try:
        parts = urlsplit(address.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as exc:
        raise _refusal(address, str(exc)) from exc
    if parts.scheme not in DEFAULT_PORTS:
        raise _refusal(address, N_("it must begin with http:// or https://"))
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise _refusal(address, N_("it must not carry a user, a query or a fragment"))
    if not re.fullmatch(r"[!-~]+", address.strip()) or re.search(r"[<>\"'`\\{}|^,]", address):
        raise _refusal(address, N_("it holds characters that no address has"))
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    if port not in LOW_PORTS and port < FIRST_FREE_PORT:
        raise _refusal(address, N_("port %(port)s is not allowed: 80, 443 and %(first)s to 65535 are", port=port, first=FIRST_FREE_PORT))
    _check_host(address, host, networks)


def _check_host(address: str, host: str, networks: tuple[Network, ...]) -> None:
    try:
        literal = ip_address(host)
    except ValueError:
        if not _HOST_NAME.fullmatch(host) or re.fullmatch(r"[\d.]+|0x[0-9a-fA-F.x]+", host):
            raise _refusal(address, N_("its host is neither a name nor an IP address")) from None
        return
    if not is_allowed(literal, networks):
        raise _refusal(address, N_("it lies outside the networks of XXL_JOB_EXECUTOR_NETWORKS"))


def _refusal(address: str, reason: str) -> InvalidInput:
    return InvalidInput("addressList", N_("address '%(address)s' refused: %(reason)s", address=address[:ADDRESS_MAX], reason=reason))


def is_allowed(address: IPAddress, networks: tuple[Network, ...]) -> bool:
    """Whether an IP address may be called: in an allowed network, and never link-local (metadata services), multicast or unspecified."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in METADATA:
        return False
    return any(address in network for network in networks if network.version == address.version)


def join(address: str, action: str) -> str:
    """Return the URL of an action: exactly one slash between the address and the name."""
    return f"{address.strip().rstrip('/')}/{action}"
