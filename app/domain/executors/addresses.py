"""Addresses of executors as text: their scheme, and their two spellings.

Executors before 2.2 and some clients have addresses without a scheme, such as ``10.1.2.3:9999``. Our client
registers ``http://10.1.2.3:9999/``; people often leave out the final slash.
"""

from collections.abc import Iterable


def has_scheme(address: str) -> bool:
    """Whether an address names its protocol; no request is sent to one without."""
    return "://" in address


def without_slash(address: str) -> str:
    """Return the form in which two addresses are compared."""
    return address.strip().rstrip("/")


def spellings(addresses: Iterable[str]) -> set[str]:
    """Return the addresses as they are, with and without a final slash."""
    return {
        spelling
        for address in addresses
        for spelling in (address, without_slash(address), f"{without_slash(address)}/")
    }
