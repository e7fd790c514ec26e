"""The time ring: fires of the next seconds, in 60 slots of a second, out again at their due millisecond.

A cache, not a store: every entry is a row of `xxl_job_fire`, and the poll finds what a ring has lost.
"""

import threading
from collections.abc import Iterable

from app.clock import Millis
from app.domain.planning import DueFire

SLOTS = 60
#: longest wait for the next entry
IDLE_WAIT_MS: Millis = 1_000


class TimeRing:
    """Entries by the second of their due time; one lock around all of it."""

    def __init__(self, now_ms: Millis) -> None:
        self._slots: list[list[DueFire]] = [[] for _ in range(SLOTS)]
        #: second whose slot is looked at next; an entry that is late already goes there
        self._second = now_ms // 1000
        self._changed = threading.Condition()

    def push(self, fires: Iterable[DueFire]) -> None:
        """Put fires in; late ones come out at the next look."""
        with self._changed:
            for fire in fires:
                second = min(max(fire.due_time // 1000, self._second), self._second + SLOTS - 1)
                self._slots[second % SLOTS].append(fire)
            self._changed.notify()

    def take(self, now_ms: Millis) -> list[DueFire]:
        """Take out everything due, earliest first. A clock set back takes out nothing; one set forward all that is due."""
        with self._changed:
            due: list[DueFire] = []
            last = now_ms // 1000
            for second in range(max(self._second, last - SLOTS + 1), last + 1):
                slot = self._slots[second % SLOTS]
                due += [fire for fire in slot if fire.due_time <= now_ms]
                slot[:] = [fire for fire in slot if fire.due_time > now_ms]
            self._second = max(self._second, last)
            return sorted(due, key=lambda fire: fire.due_time)

    def wait(self, now_ms: Millis) -> None:
        """Wait until the next entry is due or a new one comes, at most IDLE_WAIT_MS."""
        with self._changed:
            next_ms = min((fire.due_time for slot in self._slots for fire in slot), default=now_ms + IDLE_WAIT_MS)
            self._changed.wait(min(max(next_ms - now_ms, 0), IDLE_WAIT_MS) / 1000)

    def wake(self) -> None:
        """End a wait, for a stop."""
        with self._changed:
            self._changed.notify()

    def __len__(self) -> int:
        with self._changed:
            return sum(len(slot) for slot in self._slots)
