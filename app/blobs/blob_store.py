"""Blob store: objects by name, each written once and whole."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from app.clock import Millis


class NoBlob(Exception):
    """There is no such object."""


class StoreFull(Exception):
    """There is no room for the object."""


class StoredBlob(NamedTuple):
    """An object of a store."""

    name: str
    size: int
    written_ms: Millis


class BlobStore(Protocol):
    """Objects whose names are relative paths, such as ``2026/11/30/7/1201/1-40-0f3a….gz``."""

    #: reads that one reader makes at the same time; 1: each answers at once
    @property
    def reads_at_once(self) -> int: ...

    def put(self, name: str, content: bytes) -> None:
        """Store an object durably; it is there whole or not at all. Raises StoreFull and OSError."""

    def get(self, name: str) -> bytes:
        """Return an object; raises NoBlob and OSError."""

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """Return at most ``size`` bytes of an object from a position on; raises NoBlob and OSError."""

    def delete(self, names: list[str]) -> None:
        """Delete objects; those that do not exist are no error. Raises OSError."""

    def list(self, prefix: str) -> Iterator[StoredBlob]:
        """Yield the objects below a folder, ``""``: all, in no order. Raises OSError."""

    def free_bytes(self) -> int | None:
        """Return how much room there is; None: unknown."""
