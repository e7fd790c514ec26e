"""The asyncio side of claim, send, record: due fires in, outcomes in the database.

One event loop sends; one thread writes. While the writer commits one group the next one gathers, so that groups grow with
the load. Every address has its own slots: whoever hangs holds only these.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.config import Config
from app.domain.evidence import Fate
from app.domain.planning import DueFire
from app.domain.routing import RouteState
from app.pipeline.claim import PROBE_LEASE_MS, ClaimBatch, Claimed, Claimer, claim, find_unseen
from app.pipeline.record import fix_address, give_back, record
from app.pipeline.send import Sender, Sent, nobody_said_yes
from app.pipeline.warm_up import warm_up
from workers.event_loop import new_event_loop
from workers.group_writer import AWAY, GroupWriter
from workers.lanes import Lanes
from workers.turns import Lane, Place

logger = logging.getLogger(__name__)

#: fires of one claim
CLAIM_MAX = 512
#: period of the poll for rows the console wrote, and for orphans
POLL_MS: Millis = 250
#: and while others wait to be claimed: what it finds would wait behind them
BUSY_POLL_MS: Millis = 1_000
POLL_ROWS = 1_000
#: the call begins within so long after the claim began, or not at all: the lease must outlive it
START_WITHIN_S = 0.9
#: a lease outlives the trigger time-out by this: a late start, an answer in dribs (a second), outcomes kept back, and their writing
LEASE_MARGIN_MS: Millis = 4_000
#: with more claimed runs than this waiting for their turn, claims wait; no longer than this where none of them gets on, and in all
CROWD_MAX = 32
CROWD_STUCK_S = 0.05
CROWD_WAIT_S = 0.5
CROWD_LOOK_S = 0.002
#: period of the look for sends that hold a place of the fast lane for too long
OVERDUE_LOOK_S = 0.1
#: outcomes are written when there are so many, or after so long, even while fires are due
OUTCOMES_MAX = 2_000
OUTCOMES_WAIT_S = 1.0
#: outcomes gather for so long before they are written
GATHER_S = 0.01
#: wait after a transaction that failed
DATABASE_WAIT_S = 1.0
#: how long a stop waits for sends in flight, beyond the trigger time-out
STOP_MARGIN_S = 3.0


@dataclass(slots=True)
class _Sending:
    """A claimed run on its way, with the monotonic instant after which its call may no longer begin."""

    claimed: Claimed
    lane: Lane
    start_before: float
    slots: list[str] = field(default_factory=list)


class Dispatcher:
    """Claims, sends and records; start it, offer it due fires, stop it. Claims nothing while ``may_fire`` says no."""

    def __init__(self, config: Config, *, node: str, token: str, may_fire: Callable[[], bool] = lambda: True) -> None:
        self._config = config
        self._node = node
        self._may_fire = may_fire
        self._lanes = Lanes(fast_max=config.fast_max, slow_max=config.slow_max, address_max=config.address_inflight_max)
        lease_ms = config.trigger_timeout_s * 1000 + LEASE_MARGIN_MS
        self._claimer = Claimer(
            node=node, zone=config.time_zone, token=token, lease_ms=lease_ms, routes=RouteState(), room=self._lanes.room
        )
        self._writer = GroupWriter()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="dispatch-poll")
        self._outcomes: list[Sent] = []
        self._unsent: list[Claimed] = []
        self._written_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)

    def start(self) -> None:
        """Begin; returns when the event loop runs and the first claim will not be slow."""
        warm_up(self._claimer, now_ms=now_ms())
        self._thread.start()
        self._started.wait()

    def offer(self, due: Sequence[DueFire]) -> None:
        """Hand over fires that are due now; from any thread."""
        self._loop.call_soon_threadsafe(self._take, due)

    def stop(self) -> None:
        """Claim nothing more, wait for the sends in flight and write their outcomes."""
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._begin_stop)
        self._thread.join(self._config.trigger_timeout_s + STOP_MARGIN_S)
        if self._thread.is_alive():
            logger.warning("dispatcher did not end in time in_flight=%s", len(self._tasks))
        self._reader.shutdown(wait=True)
        self._writer.close()

    def _run(self) -> None:
        """Run the event loop; should it ever break, the process ends and the supervisor starts a new one."""
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._main())
        except Exception:
            logger.exception("dispatcher broken, the process ends")
            os._exit(1)

    def _take(self, due: Sequence[DueFire]) -> None:
        self._lanes.add(due)
        self._offered.set()
        self._wake.set()

    def _begin_stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._offered = asyncio.Event()
        self._sender = Sender(self._config)
        poll = asyncio.create_task(self._poll())
        watch = asyncio.create_task(self._watch_lanes())
        self._started.set()
        try:
            while not self._stopping:
                await self._wake.wait()
                self._wake.clear()
                await self._write()
            poll.cancel()
            watch.cancel()
            while self._tasks or self._outcomes or self._unsent:
                if self._tasks:
                    await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                await self._write_back()
        finally:
            await self._sender.close()

    async def _write(self) -> None:
        """Claim what is due; outcomes wait until nothing is, but not for long."""
        while (self._outcomes or self._unsent or self._lanes.waiting) and not self._stopping:
            await self._let_sends_begin()
            due = self._lanes.take(CLAIM_MAX)
            if due:
                await self._claim(due)
            else:
                await self._gather()
            kept_back = time.monotonic() - self._written_at
            if not self._lanes.waiting or len(self._outcomes) >= OUTCOMES_MAX or kept_back > OUTCOMES_WAIT_S:
                await self._write_back()

    async def _let_sends_begin(self) -> None:
        """Let runs that are claimed and wait for a turn go first: another claim beside them would slow both down."""
        until, least, stuck_at = time.monotonic() + CROWD_WAIT_S, self._lanes.crowd(), time.monotonic() + CROWD_STUCK_S
        while (crowd := self._lanes.crowd()) > CROWD_MAX and time.monotonic() < min(stuck_at, until) and not self._stopping:
            if crowd < least:
                least, stuck_at = crowd, time.monotonic() + CROWD_STUCK_S
            await asyncio.sleep(CROWD_LOOK_S)

    async def _watch_lanes(self) -> None:
        """Let others into the fast lane in the place of sends that hang."""
        while True:
            await asyncio.sleep(OVERDUE_LOOK_S)
            self._lanes.let_go_overdue(time.monotonic())

    async def _gather(self) -> None:
        """Let outcomes gather for a moment; a fire that is due ends it at once."""
        self._offered.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._offered.wait(), GATHER_S)

    async def _claim(self, due: list[DueFire]) -> None:
        """Claim a group. Where that fails the fires are forgotten here: the poll finds those that are still PENDING."""
        batches: list[tuple[ClaimBatch, float]] = []
        wait_s = 0.0
        try:
            if self._may_fire():  # by a clock that is ahead everything would be due
                await self._writer.write(due, self._claim_group, into=batches, spoilt=self._hold_off)
        except AWAY as exc:
            logger.error("claim failed fires=%s database_error=%s", len(due), exc.orig)
            wait_s = DATABASE_WAIT_S
        self._lanes.forget(fire.id for fire in due)
        for batch, start_before in batches:
            self._lanes.add(batch.expanded)
            for claimed in batch.claimed:
                self._launch(_Sending(claimed, self._lanes.lane_of(claimed.job_id), start_before))
            for address, waiting in batch.parked.items():  # what was claimed before them counts by now
                self._lanes.park(address, waiting)
        self._lanes.unpark_forsaken()
        await asyncio.sleep(wait_s)

    def _hold_off(self, fire: DueFire) -> None:
        """Look at a fire that cannot be claimed ever more rarely: it stays in the database, and in the log."""
        self._lanes.hold_off(fire.id, time.monotonic())

    def _claim_group(self, session: Session, group: Sequence[DueFire]) -> tuple[ClaimBatch, float]:
        """Claim in the writing thread; return also the monotonic instant the sends must have begun by."""
        session.connection()  # on SQLite this waits for other writers: not a part of the lease
        start_before = time.monotonic() + START_WITHIN_S
        return claim(session, group, self._claimer, now_ms=now_ms()), start_before

    async def _write_back(self) -> None:
        """Write outcomes; while the database is away they wait here, the claims' leases in the rows."""
        self._written_at = time.monotonic()
        outcomes, self._outcomes = self._outcomes, []
        unsent, self._unsent = self._unsent, []
        try:
            if outcomes:
                await self._writer.write(outcomes, lambda session, group: record(session, group, node=self._node, now_ms=now_ms()))
                outcomes = []
            if unsent:
                await self._writer.write(unsent, lambda session, group: give_back(session, group, node=self._node))
                logger.warning("runs given back count=%s", len(unsent))
        except AWAY as exc:
            logger.error("outcomes not written count=%s database_error=%s", len(outcomes), exc.orig)
            self._outcomes = outcomes + self._outcomes
            self._unsent = unsent + self._unsent
            await asyncio.sleep(DATABASE_WAIT_S)

    def _launch(self, sending: _Sending) -> None:
        address = sending.claimed.address
        self._lanes.enter(sending.lane, address)
        if address is not None:
            sending.slots.append(address)
        task = asyncio.create_task(self._serve(sending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, sending: _Sending) -> None:
        """Bring one run to its outcome; a pool task, so whatever happens ends here."""
        claimed = sending.claimed
        try:
            sent = await (self._probe_and_send(sending) if claimed.address is None else self._send_to(sending, claimed.address))
            if sent is None:
                self._unsent.append(claimed)
            else:
                self._outcomes.append(sent)
        except Exception:
            logger.exception("send failed log_id=%s", claimed.log_id)  # its lease ends, the resolver looks
        finally:
            for address in sending.slots:
                self._lanes.free_slot(address)
            self._lanes.leave(sending.lane)
            self._wake.set()

    async def _send_to(self, sending: _Sending, address: str) -> Sent | None:
        """Send, unless this process was held up for so long that another may have the row by now."""
        place = await self._take_place(sending, address)
        if place is None:
            return None
        try:
            sent = await self._sender.send(sending.claimed, address)
        finally:
            self._lanes.turns.end(place, now=time.monotonic())
        self._lanes.note(sending.claimed.job_id, address, sent.took_ms, now_ms())
        return sent

    async def _take_place(self, sending: _Sending, address: str) -> Place | None:
        """Wait for a turn, no longer than the claim allows; None: it came too late or not at all."""
        begun = self._lanes.turns.begin(sending.lane, address, now=time.monotonic(), until=sending.start_before)
        place = begun if isinstance(begun, Place) else await begun
        if place is None:
            self._lanes.hold_back(address)
        elif time.monotonic() > sending.start_before:
            self._lanes.turns.end(place, now=time.monotonic())
            return None
        return place

    async def _probe_and_send(self, sending: _Sending) -> Sent | None:
        """Take the first candidate in order that says yes, and the next one where it then refuses; at a stop none any more."""
        claimed, fresh_until = sending.claimed, sending.start_before
        lines: list[str] = []
        unreachable: list[str] = []
        for number, address in enumerate(claimed.peers, 1):
            if self._stopping:  # one that does not answer costs 300 ms each; no byte of the run is out, or it was refused
                return None
            probed = await self._sender.probe(claimed, address)
            lines.append(probed.line)
            unreachable += [address] if probed.unreachable else []
            if not probed.yes:
                continue
            self._lanes.take_slot(address)
            sending.slots.append(address)
            left, late = len(claimed.peers) - number, time.monotonic() > fresh_until
            sent = await self._send_to(sending, address) if await self._fix(sending, address, left, late=late) else None
            if sent is None:
                return None
            lines += sent.story
            unreachable += sent.unreachable
            if sent.verdict.fate is not Fate.REFUSED:
                return sent._replace(story=tuple(lines), unreachable=tuple(unreachable))
        return nobody_said_yes(claimed, lines, unreachable)

    async def _fix(self, sending: _Sending, address: str, left: int, *, late: bool) -> bool:
        """Commit to a candidate before the first byte leaves, with a lease that begins now and covers the asking of those left."""
        fixed_at = time.monotonic()
        lease_until = now_ms() + self._claimer.lease_ms + left * PROBE_LEASE_MS
        fix = partial(fix_address, address=address, node=self._node, lease_until=lease_until, late=late)
        held = await self._writer.write([sending.claimed], lambda session, group: fix(session, group[0]))
        sending.start_before = fixed_at + START_WITHIN_S
        return held == [True]

    async def _poll(self) -> None:
        """Find what no ring holds: rows of the console, of a dead node, of this node's earlier life."""
        after_id = 0
        while True:
            await asyncio.sleep((BUSY_POLL_MS if self._lanes.waiting else POLL_MS) / 1000)
            try:
                look = partial(find_unseen, self._node, after_id=after_id, now_ms=now_ms(), limit=POLL_ROWS)
                found = await self._loop.run_in_executor(self._reader, look)
            except DBAPIError as exc:
                logger.error("poll failed database_error=%s", exc.orig)
                await asyncio.sleep(DATABASE_WAIT_S)
                continue
            except Exception:
                logger.exception("poll failed")
                continue
            after_id = found[-1].id if len(found) == POLL_ROWS else 0
            fresh = [fire for fire in found if not self._lanes.is_held_off(fire.id, time.monotonic())]
            if fresh and self._may_fire():
                self._take(fresh)
