"""Runs claimed shortly before they are due, until they are; belongs to the dispatcher's loop."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from app.clock import Millis, now_ms
from app.domain.planning import DueFire
from app.pipeline.claimed import CLAIM_AHEAD_MS
from workers.lanes import Lanes
from workers.send_task import SendTask

#: calls a function after a wait in ms
CallIn = Callable[[Millis, Callable[[], None]], None]


def _call_in(wait_ms: Millis, work: Callable[[], None]) -> None:
    wait_ms = min(max(wait_ms, 1), CLAIM_AHEAD_MS)  # a clock that was set changes none of these waits
    asyncio.get_running_loop().call_later(wait_ms / 1000, work)


class HeldSends:
    """Starts sends when they are due."""

    def __init__(
        self, lanes: Lanes, call_in: CallIn = _call_in, clock: Callable[[], Millis] = now_ms
    ) -> None:
        self._lanes = lanes
        self._call_in = call_in
        self._clock = clock

    def start(self, sends: Sequence[SendTask], start_before: float) -> None:
        """Start each when it is due; ``start_before`` is their deadline, in monotonic seconds."""
        ahead: dict[Millis, list[SendTask]] = {}
        moment = self._clock()
        for send in sends:
            if send.claimed.due_ms <= moment:
                send.start()
            else:
                ahead.setdefault(send.claimed.due_ms, []).append(send)
        for due_ms, held in ahead.items():
            self._lanes.held += len(held)
            self._start_at(due_ms, held, start_before)

    def _start_at(self, due_ms: Millis, held: Sequence[SendTask], start_before: float) -> None:
        """Give them back if the clock was set back, so that they would be sent when others may have them."""
        wait_ms = due_ms - self._clock()
        if wait_ms > 0 and time.monotonic() < start_before:
            self._call_in(wait_ms, partial(self._start_at, due_ms, held, start_before))
            return
        self._lanes.held -= len(held)
        for send in held:
            if wait_ms <= 0:
                send.start()
            else:
                send.give_back()

    def offer_at_due(self, early: Sequence[DueFire], offer: Callable[[Sequence[DueFire]], None]) -> None:
        """Offer fires again that could not be claimed ahead."""
        for fire in early:
            self._call_in(fire.due_time - self._clock(), partial(offer, [fire]))
