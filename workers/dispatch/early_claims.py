"""Early claims: runs that are claimed shortly before they are due and sent at that instant."""

import asyncio
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import NamedTuple

from app.clock import Millis, elapsed_s, exact_ms
from app.domain.schedules.planning import DueFire
from app.pipeline.claimed_run import CLAIM_AHEAD_MS
from app.pipeline.sent_log_ids import SentLogIds
from workers.dispatch.lanes import Lanes
from workers.dispatch.send_task import SendTask

#: schedules a function after a wait in ms
CallIn = Callable[[float, Callable[[], None]], None]


def _call_in(wait_ms: float, work: Callable[[], None]) -> None:
    wait_ms = min(max(wait_ms, 1), CLAIM_AHEAD_MS)  # The limit holds if the clock is set.
    asyncio.get_running_loop().call_later(wait_ms / 1000, work)


class Instant(NamedTuple):
    """When runs are due by the wall clock, and, if that is set ahead, by ``elapsed_s``."""

    due_ms: Millis
    not_before: float


class EarlySends:
    """Starts sends when they are due."""

    def __init__(
        self,
        lanes: Lanes,
        sent_log_ids: SentLogIds,
        call_in: CallIn = _call_in,
        clock: Callable[[], float] = exact_ms,
        monotonic: Callable[[], float] = elapsed_s,
    ) -> None:
        self._lanes = lanes
        self._sent_log_ids = sent_log_ids
        self._call_in = call_in
        self._clock = clock
        self._monotonic = monotonic

    def start(self, sends: Sequence[SendTask], start_before: float) -> None:
        """Start each when it is due; ``start_before`` is their deadline, by ``elapsed_s``.

        Give all back if the database may have lost commits, as their log ids may show.
        """
        claims = [send.claim for send in sends]
        new_ids = [run.log_id for run in claims if run.has_new_id]
        if not self._sent_log_ids.admit([run.log_id for run in claims], new_ids):
            for send in sends:
                send.give_back()
            return
        ahead: dict[Millis, list[SendTask]] = {}
        moment = self._clock()
        for send in sends:
            if send.claim.due_ms <= moment:
                send.start()
            else:
                ahead.setdefault(send.claim.due_ms, []).append(send)
        for due_ms, sends_of_instant in ahead.items():
            self._lanes.held += len(sends_of_instant)
            not_before = self._monotonic() + (due_ms - moment) / 1000
            self._start_at(Instant(due_ms, not_before), sends_of_instant, start_before)

    def _start_at(self, instant: Instant, sends: Sequence[SendTask], start_before: float) -> None:
        """Give them back if the clock was set back, so that they would be sent when others may have them."""
        now = self._monotonic()
        wait_ms = max(instant.due_ms - self._clock(), int((instant.not_before - now) * 1000))
        if wait_ms > 0 and now < start_before:
            self._call_in(wait_ms, partial(self._start_at, instant, sends, start_before))
            return
        self._lanes.held -= len(sends)
        for send in sends:
            if wait_ms <= 0:
                send.start()
            else:
                send.give_back()

    def keep_early(
        self,
        due_fires: Sequence[DueFire],
        prepared_ids: Container[int],
        offer: Callable[[Sequence[DueFire]], None],
    ) -> list[DueFire]:
        """Return the fires to claim now: those that are due or prepared, by id; offer the others when due."""
        moment = self._clock()
        ready: list[DueFire] = []
        early: list[DueFire] = []
        for fire in due_fires:
            (ready if fire.due_time <= moment or fire.id in prepared_ids else early).append(fire)
        if early:
            self._call_in(min(fire.due_time for fire in early) - moment, partial(offer, early))
        return ready
