"""Whose turn it is: a slot of the run's address first, then a place in its lane. Lives in the dispatcher's loop, no lock.

A run that may go at once costs two counters; one that must wait gets a future, and those that waited for too long get ``None``.
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
    """Which pool a job's sends belong to."""

    FAST = "fast"
    SLOW = "slow"


@dataclass(slots=True, eq=False)
class Place:
    """A send under way: a slot of its address and a place in its lane."""

    lane: Lane
    address: str
    #: monotonic seconds
    began: float
    overdue: bool = False


@dataclass(slots=True, eq=False)
class _Waiting:
    """A run that waits, until when it may, and where it hears of its place."""

    lane: Lane
    address: str
    until: float
    place: asyncio.Future[Place | None]


class Turns:
    """Who sends, and who waits to; all times are seconds of the loop's clock."""

    def __init__(self, places: Mapping[Lane, int], *, address_max: int) -> None:
        self._free = dict(places)
        self._address_max = address_max
        #: turns taken, by address; also of runs that have theirs and wait for a place
        self._taken: Counter[str] = Counter()
        self._at_address: dict[str, deque[_Waiting]] = {}
        self._at_gate: dict[Lane, deque[_Waiting]] = {lane: deque() for lane in places}
        #: sends that hold a place of the fast lane, those that began first in front
        self._in_fast: dict[Place, None] = {}
        #: sends of the fast lane that have lost their place there
        self.overdue = 0

    def begin(self, lane: Lane, address: str, *, now: float, until: float) -> Place | asyncio.Future[Place | None]:
        """Return a place, or the promise of one: of ``None`` where it does not come in time. Give a place back with ``end``."""
        if self._taken[address] < self._address_max:
            self._taken[address] += 1
            if self._free[lane] > 0:
                return self._place(lane, address, now)
            queue = self._at_gate[lane]
        else:
            queue = self._at_address.setdefault(address, deque())
        waiting = _Waiting(lane, address, until, asyncio.get_running_loop().create_future())
        queue.append(waiting)
        return waiting.place

    def end(self, place: Place, *, now: float) -> None:
        """Give back a turn and a place; whoever waits for them goes on."""
        if place.overdue:
            self.overdue -= 1
        else:
            self._in_fast.pop(place, None)
            self._free[place.lane] += 1
        self._go_on([place.address], now)

    def let_go_overdue(self, now: float) -> list[str]:
        """Take from sends of the fast lane that have been unanswered for too long their place there; return their addresses."""
        late: list[str] = []
        for place in list(self._in_fast):
            if now - place.began < SLOW_SEND_MS / 1000:
                break
            del self._in_fast[place]
            place.overdue = True
            self.overdue += 1
            self._free[Lane.FAST] += 1
            late.append(place.address)
        self._go_on([], now)
        return late

    def drop_late(self, now: float) -> None:
        """Tell those who have waited for too long that they get no place; whoever stands behind one that may still wait hears it later."""
        for queue in self._at_address.values():
            while queue and queue[0].until < now:
                _promise(queue.popleft(), None)
        turns: list[str] = []
        for gate in self._at_gate.values():
            while gate and gate[0].until < now:
                waiting = gate.popleft()
                _promise(waiting, None)
                turns.append(waiting.address)
        self._go_on(turns, now)

    def _place(self, lane: Lane, address: str, now: float) -> Place:
        place = Place(lane, address, now)
        self._free[lane] -= 1
        if lane is Lane.FAST:
            self._in_fast[place] = None
        return place

    def _go_on(self, turns: list[str], now: float) -> None:
        """Hand on turns that became free, then places as far as there are any."""
        while True:
            while turns:
                self._hand_on(turns.pop())
            for lane, gate in self._at_gate.items():
                while gate and self._free[lane] > 0:
                    waiting = gate.popleft()
                    if waiting.place.done():  # cancelled meanwhile
                        turns.append(waiting.address)
                    else:
                        waiting.place.set_result(self._place(lane, waiting.address, now))
            if not turns:
                return

    def _hand_on(self, address: str) -> None:
        """Give one turn of an address to the first who waits for it."""
        queue = self._at_address.get(address)
        while queue:
            waiting = queue.popleft()
            if not waiting.place.done():
                self._at_gate[waiting.lane].append(waiting)
                return
        self._at_address.pop(address, None)
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def _promise(waiting: _Waiting, place: Place | None) -> None:
    if not waiting.place.done():
        waiting.place.set_result(place)
