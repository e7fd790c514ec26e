"""Dispatcher: claims due fires, sends them and records the outcomes, in one asyncio loop.

The loop sends; one thread writes. While the writer commits one batch the next one gathers, so batches grow
with the load. Every address has its own slots, so a hanging executor holds only those.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from sqlalchemy.orm import Session
from uvloop import new_event_loop

from app.clock import Millis, elapsed_s, now_ms
from app.database.batch_writer import BatchWriter
from app.database.faults import AWAY, fault_log
from app.domain.runs.routing import RouteState
from app.domain.schedules.planning import DueFire
from app.pipeline.claim import Claim, ClaimBatch, claim
from app.pipeline.claimed_run import ClaimedRun, Claimer
from app.pipeline.limits.claim_limited import claim_limited
from app.pipeline.send import Sender, SendOutcome
from app.pipeline.sent_log_ids import SentLogIds
from app.pipeline.warm_up import warm_up
from app.runtime.metrics import CLAIM_DURATION
from app.runtime.wake_up import WakeSocket
from app.settings.config import Config
from workers.dispatch.claim_pace import BACKLOG_WAIT_S, OUTCOMES_WAIT_S, ClaimPace, Timing, with_timing
from workers.dispatch.early_claims import EarlySends
from workers.dispatch.failed_claims import FailedClaims
from workers.dispatch.lanes import Lanes
from workers.dispatch.lease_renewal import keep_leases
from workers.dispatch.poll import DATABASE_WAIT_S, Poll
from workers.dispatch.preparation import Preparation
from workers.dispatch.send_results import OUTCOMES_GROUP, SendResults
from workers.dispatch.send_task import SendServices, SendTask

logger = logging.getLogger(__name__)

#: Claims wait while more claimed runs than this wait for a permit, for BACKLOG_WAIT_S at most, or
#: BACKLOG_STUCK_S without progress. Outcomes are written when none waits.
BACKLOG_MAX = 32
BACKLOG_STUCK_S = 0.05
BACKLOG_CHECK_S = 0.002
#: period of the check for sends to demote from the fast lane
OVERDUE_CHECK_S = 0.1
#: longest period of that check while no run is being sent, which also shows that the loop is alive
IDLE_CHECK_S = 10.0
#: an event loop that is blocked for longer than this hangs
LOOP_BLOCKED_S = 60.0
#: this many outcomes are written even while fires are due; fewer after OUTCOMES_WAIT_S
OUTCOMES_MAX = 5_000
#: time in which outcomes gather before they are written
GATHER_S = 0.01
#: how long a stop waits for sends in flight, beyond the trigger timeout
STOP_MARGIN_S = 3.0


class Dispatcher:
    """Claims, sends and records; claims nothing while ``may_fire`` returns False."""

    def __init__(
        self,
        config: Config,
        *,
        node: str,
        tokens: tuple[str, ...],
        may_fire: Callable[[], bool] = lambda: True,
        sent_log_ids: SentLogIds | None = None,
    ) -> None:
        self._config = config
        self._node = node
        self._may_fire = may_fire
        self._lanes = Lanes(
            fast_max=config.fast_max, slow_max=config.slow_max, address_max=config.address_inflight_max
        )
        self._pace = ClaimPace(config.trigger_timeout_s)
        self._claimer = Claimer(
            node=node,
            zone=config.time_zone,
            tokens=tokens,
            lease_ms=self._pace.lease_ms,
            probing_ms=config.trigger_timeout_s * 1000,
            routes=RouteState(),
            capacity=self._lanes.capacity,
            sent_log_ids=sent_log_ids or SentLogIds(),
        )
        self._writer = BatchWriter("dispatch-writer")
        self._poll = Poll(
            node,
            config.time_zone,
            self._lanes,
            take=self._take,
            take_waiting=self._take_limited,
            may_fire=may_fire,
        )
        self._wake_socket = WakeSocket(config.home, node)
        self._preparation = Preparation(self._claimer, self._writer, may_fire)
        self._failed = FailedClaims(self._lanes, self._writer, config.time_zone)
        #: fires that need slots, by id
        self._limited: dict[int, DueFire] = {}
        self._results = SendResults(self._writer, self._pace, node)
        self._sends: set[SendTask] = set()
        self._early_sends = EarlySends(self._lanes, self._claimer.sent_log_ids)
        self._stopping = False
        self._looped_at = time.monotonic()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)

    def start(self) -> None:
        """Start the event loop, warmed up so that the first claim is not slow; return when it runs."""
        warm_up(self._claimer, now_ms=now_ms())
        self._thread.start()
        self._started.wait()

    @property
    def ahead_ms(self) -> Millis:
        """How long before they are due fires should be offered; from any thread."""
        return round(self._pace.ahead_ms)

    def preparing_ms(self, fires: int) -> Millis:
        """How long before they are due so many fires should be offered ahead; from any thread."""
        return self._preparation.preparing_ms(fires)

    def offer(self, due: Sequence[DueFire]) -> None:
        """Hand over fires that are due now, or in ``ahead_ms``; from any thread."""
        self._loop.call_soon_threadsafe(self._take, due)

    def offer_ahead(self, ahead: Sequence[DueFire]) -> None:
        """Hand over fires that are due soon, to be prepared; they are offered again when they are due."""
        self._loop.call_soon_threadsafe(self._take_ahead, ahead)

    def forget_prepared(self, late: Sequence[DueFire]) -> None:
        """Drop what was prepared of fires that are not offered; from any thread."""
        self._loop.call_soon_threadsafe(self._preparation.forget, late, ())

    def is_alive(self, now: float) -> bool:
        """Whether the event loop runs and was not blocked for LOOP_BLOCKED_S, by the monotonic clock."""
        return self._thread.is_alive() and now - self._looped_at < LOOP_BLOCKED_S

    def stop(self) -> None:
        """Claim nothing more, wait for the sends in flight and write their outcomes."""
        with suppress(RuntimeError):  # The loop may have ended already.
            self._loop.call_soon_threadsafe(self._start_stop)
        self._thread.join(self._config.trigger_timeout_s + STOP_MARGIN_S)
        if self._thread.is_alive():
            logger.warning("dispatcher did not end in time in_flight=%s", len(self._sends))
        self._poll.close()
        self._writer.close()

    def _run(self) -> None:
        """Run the event loop; if it breaks, end the process so that the supervisor starts a new one."""
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._main())
        except Exception:
            logger.exception("dispatcher broken, the process ends")
            os._exit(1)

    def _take(self, due_fires: Sequence[DueFire]) -> None:
        due = self._early_sends.keep_early(due_fires, self._preparation.prepared, self._take)
        if not due:
            return
        self._lanes.add(due)
        self._offered.set()
        self._wake.set()

    def _take_limited(self, fires: Sequence[DueFire]) -> None:
        self._limited |= {fire.id: fire for fire in fires}
        self._offered.set()
        self._wake.set()

    def _take_ahead(self, ahead: Sequence[DueFire]) -> None:
        self._preparation.add(ahead)
        self._offered.set()
        self._wake.set()

    def _on_signal(self) -> None:
        self._wake_socket.drain()
        self._poll.wake()

    def _start_stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake, self._offered, self._sending = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._sender = Sender(self._config)
        self._services = SendServices(
            self._lanes, self._sender, self._writer, self._pace, self._claimer, lambda: self._stopping
        )
        self._poll.start(self._loop)
        watch = asyncio.create_task(self._watch_lanes())
        signals = self._wake_socket.open()
        if signals is not None:
            self._loop.add_reader(signals, self._on_signal)
        self._started.set()
        try:
            while not self._stopping:
                await self._wake.wait()
                self._wake.clear()
                await self._write()
            if signals is not None:
                self._loop.remove_reader(signals)
            self._poll.request_stop()
            watch.cancel()
            while self._sends or self._results:
                if self._sends:
                    await self._wake.wait()
                    self._wake.clear()
                await self._results.write()
        finally:
            self._wake_socket.close()
            await self._sender.close()

    async def _write(self) -> None:
        """Claim due fires; write outcomes once no fire is due and all are sent, or after OUTCOMES_WAIT_S."""
        while self._has_work() and not self._stopping:
            await self._wait_for_backlog(BACKLOG_MAX, time.monotonic() + BACKLOG_WAIT_S)
            if limited_fires := list(self._limited.values())[: self._pace.group]:
                await self._claim(limited_fires, claim_limited)
            due = self._lanes.take(self._pace.group)
            if due:
                await self._claim(due, partial(claim, prepared_by_id=self._preparation.prepared))
            elif self._preparation.waiting:
                await self._preparation.advance()
            elif self._results.outcomes < OUTCOMES_GROUP:
                await self._gather()
            latest = self._results.written_at + OUTCOMES_WAIT_S
            if not self._lanes.waiting and self._results.outcomes < OUTCOMES_MAX:
                await self._wait_for_backlog(0, min(latest, time.monotonic() + BACKLOG_WAIT_S), idle=True)
            overdue = self._results.outcomes >= OUTCOMES_MAX or time.monotonic() > latest
            if overdue or not self._lanes.waiting:
                await self._results.write()

    def _has_work(self) -> bool:
        return bool(self._results or self._preparation.waiting or self._lanes.waiting or self._limited)

    async def _wait_for_backlog(self, most: int, until: float, *, idle: bool = False) -> None:
        """Wait while more claimed runs wait for a permit: writing and sending share one interpreter.

        ``idle``: not once a fire is due.
        """
        least, stuck_at = self._lanes.backlog(), time.monotonic() + BACKLOG_STUCK_S
        while (
            (backlog := self._lanes.backlog()) > most
            and time.monotonic() < min(stuck_at, until)
            and not (idle and self._lanes.waiting)
            and not self._stopping
        ):
            if backlog < least:
                least, stuck_at = backlog, time.monotonic() + BACKLOG_STUCK_S
            await asyncio.sleep(BACKLOG_CHECK_S)

    async def _watch_lanes(self) -> None:
        """Demote sends without an answer from the fast lane, so that others get their slots."""
        while True:
            if not self._sends:
                self._sending.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._sending.wait(), IDLE_CHECK_S)
            await asyncio.sleep(OVERDUE_CHECK_S)
            self._looped_at = time.monotonic()
            self._lanes.demote_overdue(elapsed_s())

    async def _gather(self) -> None:
        """Wait up to GATHER_S for more outcomes; a due fire ends the wait at once."""
        self._offered.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._offered.wait(), GATHER_S)

    async def _claim(self, due: list[DueFire], work: Claim) -> None:
        """Claim a batch; if that fails, forget the fires: the poll finds those still PENDING."""
        batches: list[tuple[ClaimBatch, Timing]] = []
        wait_s = 0.0
        claimer = replace(self._claimer, lease_ms=self._pace.lease_ms)
        began_ms = now_ms()

        def claim_group(session: Session, group: Sequence[DueFire]) -> ClaimBatch:
            return work(session, group, claimer, now_ms=now_ms())

        try:
            if self._may_fire():  # A clock that is ahead would make everything due.
                await self._writer.write(
                    due,
                    with_timing(claim_group, claimer.lease_ms),
                    results=batches,
                    on_poison=self._failed.observe,
                )
        except AWAY as exc:
            fault_log.write(logger, f"claim failed fires={len(due)}", exc)
            wait_s = DATABASE_WAIT_S
        self._lanes.forget(fire.id for fire in due)
        for fire in due:
            self._limited.pop(fire.id, None)
        self._preparation.forget(due, [batch for batch, _ in batches])
        if batches:
            took_s = elapsed_s() - batches[0][1].started_s
            self._pace.observe_claim(len(due), took_s)
            CLAIM_DURATION.observe(took_s)
        for batch, timing in batches:
            self._lanes.add(batch.new_fires)
            self._limited |= {fire.id: fire for fire in batch.limited_fires}
            if batch.waiting:
                self._poll.waiting_list.note()
            lease = await keep_leases(batch.claims, timing, self._pace, self._writer, self._node)
            self._launch(*lease)
            for (
                address,
                parked_fires,
            ) in batch.parked_fires.items():  # The runs claimed above are counted by now.
                self._lanes.park(address, parked_fires)
        self._lanes.unpark_orphaned()
        self._follow_up(due, [batch for batch, _ in batches], began_ms)
        await self._failed.end()
        await asyncio.sleep(wait_s)

    def _follow_up(self, due: Sequence[DueFire], batches: Sequence[ClaimBatch], began_ms: Millis) -> None:
        """Note how long a claim ahead took; take fires again that changed since they were prepared."""
        ahead = [fire for fire in due if fire.due_time > began_ms]
        if not ahead:
            return
        if batches:
            self._pace.observe_ahead(now_ms() - min(fire.due_time for fire in ahead))
        known_ids = {run.fire_id for batch in batches for run in batch.claims} | self._limited.keys()
        self._take([fire for fire in ahead if fire.id not in known_ids and not self._lanes.knows(fire.id)])

    def _launch(self, claims: Sequence[ClaimedRun], start_before: float) -> None:
        sends = [SendTask(self._services, run, start_before, self._on_end) for run in claims]
        self._sends.update(sends)
        self._sending.set()
        self._early_sends.start(sends, start_before)

    def _on_end(self, send: SendTask, outcome: SendOutcome | None) -> None:
        """Keep the outcome of a run until it is written."""
        self._sends.discard(send)
        self._results.add(send, outcome)
        self._wake.set()
