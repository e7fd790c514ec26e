"""How many sends may be in flight: fast and slow lane, and per address. Lives in the dispatcher's loop, no lock.

Source: XXL-JOB 2.4.1 JobTriggerPoolHelper: a job with more than 10 sends of over 500 ms within a minute goes to the slow
pool. The cap per address is ours: one hanging executor holds only its own slots.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from enum import StrEnum

from app.clock import MINUTE_MS, Millis
from app.domain.planning import DueFire

#: a send that takes longer counts as slow
SLOW_SEND_MS: Millis = 500
#: more slow sends than this within a minute make a slow job
SLOW_SENDS = 10
#: an address whose answers take less than this on average may have runs claimed ahead: they wait a moment here, not in the table
QUICK_ANSWER_MS = 250
#: so many times its slots
CLAIM_AHEAD = 4


class Lane(StrEnum):
    """Which pool a job's sends belong to."""

    FAST = "fast"
    SLOW = "slow"


class Lanes:
    """Who waits, who is in flight."""

    def __init__(self, *, fast_max: int, slow_max: int, address_max: int) -> None:
        self._max = {Lane.FAST: fast_max, Lane.SLOW: slow_max}
        self._address_max = address_max
        self._ready: dict[Lane, deque[DueFire]] = {Lane.FAST: deque(), Lane.SLOW: deque()}
        self._parked: dict[str, deque[DueFire]] = {}
        self._known: set[int] = set()
        self._in_lane: Counter[Lane] = Counter()
        #: claimed runs by address, on their way or waiting for a turn
        self._at_address: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Semaphore] = {}
        #: how long answers of an address take, a moving average in ms
        self._answer_ms: dict[str, float] = {}
        self._slow_sends: Counter[int] = Counter()
        self._minute = 0

    def add(self, fires: Iterable[DueFire]) -> None:
        """Line up fires that are due; one that is here already stays where it is."""
        for fire in fires:
            if fire.id not in self._known:
                self._known.add(fire.id)
                self._ready[self.lane_of(fire.job_id)].append(fire)

    def lane_of(self, job_id: int) -> Lane:
        """Return the lane of a job at present."""
        return Lane.SLOW if self._slow_sends[job_id] > SLOW_SENDS else Lane.FAST

    def take(self, limit: int) -> list[DueFire]:
        """Take fires to be claimed, no more of a lane than it has free slots."""
        taken: list[DueFire] = []
        for lane, ready in self._ready.items():
            free = min(self._max[lane] - self._in_lane[lane], limit - len(taken))
            taken += [ready.popleft() for _ in range(min(max(free, 0), len(ready)))]
        return taken

    def room(self, address: str) -> int:
        """Return how many more runs may be claimed for an address: its free slots, and some ahead unless it is known to be slow."""
        quick = self._answer_ms.get(address, 0) < QUICK_ANSWER_MS
        return self._address_max * (CLAIM_AHEAD if quick else 1) - self._at_address[address]

    def turn(self, address: str) -> asyncio.Semaphore:
        """Return what a send enters: it holds back sends beyond the slots of the address."""
        if address not in self._turns:
            self._turns[address] = asyncio.Semaphore(self._address_max)
        return self._turns[address]

    def park(self, address: str, fires: Iterable[DueFire]) -> None:
        """Let fires wait until their address has room again; a poll that finds them meanwhile adds nothing."""
        for fire in fires:
            self._known.add(fire.id)
            self._parked.setdefault(address, deque()).append(fire)
        self._unpark(address)

    def enter(self, lane: Lane, address: str | None) -> None:
        """Count a send that begins; no address: probing."""
        self._in_lane[lane] += 1
        if address is not None:
            self._at_address[address] += 1

    def take_slot(self, address: str) -> None:
        """Count a run for an address that a probe has chosen; its send waits for its turn like any other."""
        self._at_address[address] += 1

    def free_slot(self, address: str) -> None:
        """Give back a slot; whoever waited for it lines up again."""
        self._at_address[address] -= 1
        self._unpark(address)

    def leave(self, lane: Lane) -> None:
        """Count a run that has left its lane."""
        self._in_lane[lane] -= 1

    def forget(self, fire_ids: Iterable[int]) -> None:
        """Drop fires that are no longer PENDING: claimed by us or by another, or withdrawn."""
        self._known.difference_update(fire_ids)

    def hold_back(self, address: str) -> None:
        """Claim nothing ahead for an address: a run has waited for its turn there in vain."""
        self._answer_ms[address] = max(self._answer_ms.get(address, 0), QUICK_ANSWER_MS)

    def note(self, job_id: int, address: str, took_ms: Millis, now_ms: Millis) -> None:
        """Learn from a send: how quick its address is, and whether its job is slow in this calendar minute."""
        self._answer_ms[address] = 0.8 * self._answer_ms.get(address, took_ms) + 0.2 * took_ms
        if now_ms // MINUTE_MS != self._minute:
            self._minute = now_ms // MINUTE_MS
            self._slow_sends.clear()
        if took_ms > SLOW_SEND_MS:
            self._slow_sends[job_id] += 1

    @property
    def waiting(self) -> bool:
        """Whether a fire could be claimed now."""
        return any(ready and self._in_lane[lane] < self._max[lane] for lane, ready in self._ready.items())

    def _unpark(self, address: str) -> None:
        parked = self._parked.get(address)
        if parked is None:
            return
        room = self.room(address)
        for fire in reversed([parked.popleft() for _ in range(min(max(room, 0), len(parked)))]):
            self._ready[self.lane_of(fire.job_id)].appendleft(fire)
        if not parked:
            del self._parked[address]
