"""Concurrency limiter for sends: a permit takes a slot of the run's address, then a slot of its lane.

Belongs to the dispatcher's loop; no lock. A send that need not wait costs two counters; one that must wait
gets a future, resolved with ``None`` when it expires.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.clock import Millis

#: a send that takes longer counts as slow
SLOW_SEND_MS: Millis = 500


class Lane(StrEnum):
    """Pool to which a job's sends belong."""

    FAST = "fast"
    SLOW = "slow"


@dataclass(slots=True, eq=False)
class Permit:
    """Right to one send: a slot of its address and a slot of its lane."""

    lane: Lane
    address: str
    #: by the clock of the limiter
    granted_s: float
    #: demoted: it no longer counts in the fast lane
    overdue: bool = False


@dataclass(slots=True, eq=False)
class _Waiter:
    """A queued send, its deadline, and the future of its permit."""

    lane: Lane
    address: str
    until: float
    permit: asyncio.Future[Permit | None]


class SendLimiter:
    """Limits sends per address and per lane; all times are seconds of ``elapsed_s``."""

    def __init__(self, slots: Mapping[Lane, int], *, address_max: int) -> None:
        self._free = dict(slots)
        self._address_max = address_max
        #: slots taken, by address; includes sends that wait for their lane
        self._in_use: Counter[str] = Counter()
        self._address_queues: dict[str, deque[_Waiter]] = {}
        self._lane_queues: dict[Lane, deque[_Waiter]] = {lane: deque() for lane in slots}
        #: permits that count in the fast lane, oldest first
        self._in_fast: dict[Permit, None] = {}
        #: permits demoted from the fast lane and still in flight
        self.overdue = 0

    def acquire(
        self, lane: Lane, address: str, *, now: float, until: float
    ) -> Permit | asyncio.Future[Permit | None]:
        """Return a permit, or a future that becomes ``None`` if there is none before ``until``.

        Give each permit back with ``release``.
        """
        if self._in_use[address] < self._address_max:
            self._in_use[address] += 1
            if self._free[lane] > 0:
                return self._grant(lane, address, now)
            queue = self._lane_queues[lane]
        else:
            queue = self._address_queues.setdefault(address, deque())
        waiter = _Waiter(lane, address, until, asyncio.get_running_loop().create_future())
        queue.append(waiter)
        return waiter.permit

    def release(self, permit: Permit, *, now: float) -> None:
        """Return a permit; the next waiters get its slots."""
        if permit.overdue:
            self.overdue -= 1
        else:
            self._in_fast.pop(permit, None)
            self._free[permit.lane] += 1
        self._advance([permit.address], now)

    def demote_overdue(self, now: float) -> list[str]:
        """Free the fast-lane slots of sends without an answer after SLOW_SEND_MS; return their addresses."""
        addresses: list[str] = []
        for permit in list(self._in_fast):
            if now - permit.granted_s < SLOW_SEND_MS / 1000:
                break
            del self._in_fast[permit]
            permit.overdue = True
            self.overdue += 1
            self._free[Lane.FAST] += 1
            addresses.append(permit.address)
        self._advance([], now)
        return addresses

    def drop_expired(self, now: float) -> None:
        """Resolve expired waiters with ``None``, from the head only; those behind a live one follow later."""
        for queue in self._address_queues.values():
            while queue and queue[0].until < now:
                _resolve(queue.popleft(), None)
        addresses: list[str] = []
        for queue in self._lane_queues.values():
            while queue and queue[0].until < now:
                waiter = queue.popleft()
                _resolve(waiter, None)
                addresses.append(waiter.address)
        self._advance(addresses, now)

    def _grant(self, lane: Lane, address: str, now: float) -> Permit:
        permit = Permit(lane, address, now)
        self._free[lane] -= 1
        if lane is Lane.FAST:
            self._in_fast[permit] = None
        return permit

    def _advance(self, addresses: list[str], now: float) -> None:
        """Give freed address slots, then free lane slots, to the waiters at the head of the queues."""
        while True:
            while addresses:
                self._pass_on(addresses.pop())
            for lane, queue in self._lane_queues.items():
                while queue and self._free[lane] > 0:
                    waiter = queue.popleft()
                    if waiter.permit.done():  # It was cancelled meanwhile.
                        addresses.append(waiter.address)
                    else:
                        waiter.permit.set_result(self._grant(lane, waiter.address, now))
            if not addresses:
                return

    def _pass_on(self, address: str) -> None:
        """Give one slot of an address to its first waiter."""
        queue = self._address_queues.get(address)
        while queue:
            waiter = queue.popleft()
            if not waiter.permit.done():
                self._lane_queues[waiter.lane].append(waiter)
                return
        self._address_queues.pop(address, None)
        self._in_use[address] -= 1
        if not self._in_use[address]:
            del self._in_use[address]


def _resolve(waiter: _Waiter, permit: Permit | None) -> None:
    if not waiter.permit.done():
        waiter.permit.set_result(permit)
