"""Watch of the backfills: makes their steps, a loop of the monitor."""

import select
import time
from collections.abc import Callable

from app.clock import Clock, Millis, now_ms
from app.runtime.wake_up import BACKFILLS, WakeSocket
from app.services.backfills.steps import advance
from app.settings.config import Config
from app.store.backfills import steps

#: longest wait for a signal; what other hosts end is found after it
IDLE_S = 1.0
#: pause after a look, as a multiple of its duration: backfills take half of the thread's time at most
PAUSE_FACTOR = 1.0
#: longest such pause
PAUSE_MAX_S = 1.0
#: after this many looks, about half a minute at rest, all backfills are looked at, whatever has changed
LOOKS = 30


class Looks:
    """Looks at all backfills, but for those that waited for a run and of which nothing has changed since."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: waiting backfill -> its sign before the look that found nothing to do
        self._waiting: dict[int, tuple[object, ...]] = {}
        self._count = 0

    def look(self) -> bool:
        """Make steps of backfills; return whether any may go on at once.

        An error with one of them is raised after the steps of the others.
        """
        self._count += 1
        former = self._waiting if self._count % LOOKS else {}
        self._waiting, errors, may_go_on = {}, list[Exception](), False
        for backfill_id, sign in steps.find_active().items():
            try:
                goes_on = former.get(backfill_id) != sign and advance(backfill_id, clock=self._clock)
            except Exception as exc:
                errors.append(exc)
                continue
            may_go_on |= goes_on
            if not goes_on:
                self._waiting[backfill_id] = sign
        if errors:
            raise errors[0]
        return may_go_on


class BackfillWatch:
    """Makes the steps of all backfills; ``tick`` belongs to one thread."""

    def __init__(
        self,
        config: Config,
        *,
        node: str,
        clock: Clock = now_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._socket = WakeSocket(config.home, node, BACKFILLS)
        self._looks = Looks(clock)
        self._is_started = False
        self._may_go_on = False

    def close(self) -> None:
        """Close the socket, after the last tick."""
        self._socket.close()

    def tick(self, _at_ms: Millis) -> Millis:
        """Wait for the end of a run or a second, then make steps; return the pause until the next look."""
        if not self._is_started:
            self._is_started = True
            self._socket.open()
        elif not self._may_go_on:
            descriptor = self._socket.descriptor
            select.select([descriptor] if descriptor is not None else [], [], [], IDLE_S)
        self._socket.drain()
        began_s = self._monotonic()
        self._may_go_on = self._looks.look()
        return int(1_000 * min((self._monotonic() - began_s) * PAUSE_FACTOR, PAUSE_MAX_S))
