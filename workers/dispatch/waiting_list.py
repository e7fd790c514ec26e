"""Waiting list: finds the runs that wait for a limit and may have slots by now; used by the poll's thread.

It also lets those go on that wait for a round which is decided, a blackout which is over, or a missed run
before them which has ended.
"""

import time
from collections.abc import Callable

from app.clock import Millis
from app.domain.schedules.planning import DueFire
from app.pipeline.calendars.pauses import resume
from app.pipeline.limits.claim_limited import end_waits, find_ready, has_waiting
from app.pipeline.missed_runs import release_next
from app.pipeline.rounds.gate import release

#: period of the question whether any run waits
ASK_S = 1.0
#: pause after a look, as a multiple of its duration: a long list takes a fifth of the thread's time at most
PAUSE_FACTOR = 4


class WaitingList:
    """When to look for runs that wait; asks nothing while there are none."""

    def __init__(self, zone: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._zone = zone
        self._monotonic = monotonic
        self._has_any = False
        self._ask_at = self._look_at = 0.0

    def note(self) -> None:
        """Note that a run has begun to wait; from any thread."""
        self._has_any = True

    def look(self, now_ms: Millis) -> list[DueFire]:
        """Skip the runs whose longest wait is over; return some that may have slots.

        Opens its own transactions.
        """
        began_s = self._monotonic()
        if began_s < (self._look_at if self._has_any else self._ask_at):
            return []
        is_gated, is_paused, is_behind = release(now_ms=now_ms), resume(now_ms=now_ms), release_next()
        self._has_any = has_waiting() or is_gated or is_paused or is_behind
        self._ask_at = began_s + ASK_S
        if not self._has_any:
            return []
        end_waits(zone=self._zone, now_ms=now_ms)
        ready = find_ready()
        took_s = self._monotonic() - began_s
        self._look_at = began_s + took_s * (1 + PAUSE_FACTOR)
        return ready
