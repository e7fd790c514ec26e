"""Caller: access of pages and API to executors, with the tokens to send, and to the logs kept of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from app.blobs.stores import Archive
from app.domain.text.texts import N_
from app.executors.gateway import Gateway
from app.executors.permits import Permits

LEFT_GROUP = N_("no longer an address of this executor group, so the group's access token is not sent there")


@dataclass(frozen=True, slots=True)
class Caller:
    """Access of the console to executors: the gateway, and the tokens for groups without their own.

    Every use of the gateway is inside ``permit``, and no database transaction is open meanwhile.
    """

    gateway: Gateway
    #: the token to send, and during a changeover the former one
    tokens: tuple[str, ...]
    #: None: a permit is held already
    permits: Permits | None = None
    #: None: logs are read at executors only
    archive: Archive | None = None

    @contextmanager
    def permit(self, *, stream: bool = False) -> Iterator["Caller"]:
        """Hold one permit during the block; yield the caller that uses it. Raises TooManyCalls."""
        if self.permits is None:
            yield self
            return
        with self.permits.hold(stream=stream):
            yield replace(self, permits=None)
