"""Time ring: fires of the next seconds in 60 slots of one second, taken out at their due millisecond.

A cache, not a store: every entry is a row of `xxl_job_fire`, and the poll finds fires a ring has lost.
"""

import threading
from collections.abc import Iterable

from app.clock import Millis
from app.domain.schedules.planning import DueFire

SLOTS = 60
#: longest wait for the next entry
IDLE_WAIT_MS: Millis = 1_000


class TimeRing:
    """Fires by the second of their due time, behind one lock."""

    def __init__(self, now_ms: Millis) -> None:
        self._slots: list[list[DueFire]] = [[] for _ in range(SLOTS)]
        #: second whose slot is read next; a fire that is already late goes there
        self._second = now_ms // 1000
        self._changed = threading.Condition()

    def push(self, fires: Iterable[DueFire]) -> None:
        """Add fires; late ones come out with the next ``take``."""
        with self._changed:
            self._place(fires)
            self._changed.notify()

    def _place(self, fires: Iterable[DueFire]) -> None:
        for fire in fires:
            self._slots[max(fire.due_time // 1000, self._second) % SLOTS].append(fire)

    def take(self, now_ms: Millis) -> list[DueFire]:
        """Take out everything due, earliest first.

        Holds after the clock has been set too: forward, all fires in between; back, none too early.
        """
        with self._changed:
            last = now_ms // 1000
            first = max(min(self._second, last), last - SLOTS + 1)
            fires: list[DueFire] = []
            for number in {second % SLOTS for second in (self._second, *range(first, last + 1))}:
                fires += self._slots[number]
                self._slots[number] = []
            self._second = last
            self._place(fire for fire in fires if fire.due_time > now_ms)
            return sorted((fire for fire in fires if fire.due_time <= now_ms), key=lambda fire: fire.due_time)

    def count_until(self, until_ms: Millis) -> int:
        """Return how many fires are due by then."""
        with self._changed:
            return sum(fire.due_time <= until_ms for slot in self._slots for fire in slot)

    def wait(self, now_ms: Millis) -> None:
        """Wait until the next fire is due or a new one is pushed, at most IDLE_WAIT_MS."""
        with self._changed:
            next_ms = min(
                (fire.due_time for slot in self._slots for fire in slot), default=now_ms + IDLE_WAIT_MS
            )
            self._changed.wait(min(max(next_ms - now_ms, 0), IDLE_WAIT_MS) / 1000)

    def wake(self) -> None:
        """End a wait, for a stop."""
        with self._changed:
            self._changed.notify()

    def __len__(self) -> int:
        with self._changed:
            return sum(len(slot) for slot in self._slots)
