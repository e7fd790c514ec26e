"""IP address checks: networks that requests may go to or come from.

No request goes to a cloud's metadata service.
"""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from app.settings.config import Network

IPAddress = IPv4Address | IPv6Address

#: ports of web addresses without one
DEFAULT_PORTS = {"http": 80, "https": 443}
#: every network: only addresses that are never called are refused
EVERYWHERE: tuple[Network, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))
#: metadata services outside link-local (AWS, Google, Alibaba, Oracle, Azure); link-local is always refused
METADATA = frozenset(
    ip_address(text)
    for text in ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192", "168.63.129.16")
)
METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog"})
#: IPv6 addresses with an IPv4 address in the last 32 bits that a gateway translates to
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))


def is_allowed(address: IPAddress, networks: tuple[Network, ...]) -> bool:
    """Whether an IP address may be called.

    It must be in an allowed network; link-local (metadata services), multicast and unspecified ones are
    refused, also inside an IPv6 address.
    """
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(_is_never_called(candidate) for candidate in (address, *_embedded_addresses(address))):
        return False
    return any(address in network for network in networks if network.version == address.version)


def _is_never_called(address: IPAddress) -> bool:
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in METADATA


def _embedded_addresses(address: IPAddress) -> Iterator[IPv4Address]:
    if isinstance(address, IPv4Address):
        return
    if address.sixtofour is not None:
        yield address.sixtofour
    if any(address in network for network in _TRANSLATED):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def is_from(client: str, networks: tuple[Network, ...]) -> bool:
    """Whether the address of a client is in one of these networks."""
    try:
        address = ip_address(client.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks if network.version == address.version)


def is_metadata_name(host: str) -> bool:
    """Whether a host name is known to lead to a metadata service."""
    return host.lower().rstrip(".") in METADATA_NAMES


def read_literal(host: str) -> IPAddress | None:
    """Return the IP address that a host is, also written as by inet_aton: ``2130706433``, ``0x7f.1``."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (OSError, ValueError):  # It is a name, or not ASCII.
        return None
