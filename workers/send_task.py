"""Send of one claimed run: its permit, its candidates if the route probes, its one POST.

Belongs to the dispatcher's loop.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.batch_writer import BatchWriter
from app.clock import Millis, now_ms
from app.database_faults import AWAY, fault_log
from app.domain.evidence import Fate
from app.metrics import FIRE_LAG, FIRES_LATE, FIRES_SENT, SEND_DURATION
from app.pipeline.claim import Claimed, Claimer, probing_ms
from app.pipeline.record import Lease, fix_address
from app.pipeline.send import Sender, Sent, no_candidate
from workers.candidates import CandidateSearch
from workers.claim_pace import ClaimPace, timed
from workers.lanes import Lanes
from workers.send_limiter import Permit

logger = logging.getLogger(__name__)

#: a fire sent later than this after its instant counts as late
LATE_MS: Millis = 1_000


@dataclass(frozen=True, slots=True)
class SendParts:
    """Parts shared by all sends of a dispatcher."""

    lanes: Lanes
    sender: Sender
    writer: BatchWriter
    pace: ClaimPace
    claimer: Claimer
    stopping: Callable[[], bool]


class SendTask:
    """A claimed run and the slots it holds; call ``enter`` before and ``leave`` after ``run``."""

    __slots__ = ("_is_sent", "_lane", "_parts", "_slots", "_start_before", "claimed")

    def __init__(self, parts: SendParts, claimed: Claimed, start_before: float) -> None:
        self._parts = parts
        self.claimed = claimed
        #: deadline for starting the send, in monotonic seconds
        self._start_before = start_before
        self._lane = parts.lanes.lane_of(claimed.job_id)
        self._slots: list[str] = []
        self._is_sent = False

    def enter(self) -> None:
        """Count the run in its lane and at its address, if that is known."""
        self._parts.lanes.enter(self._lane, self.claimed.address)
        if self.claimed.address is not None:
            self._slots.append(self.claimed.address)

    def leave(self) -> None:
        """Give back what the run holds."""
        for address in self._slots:
            self._parts.lanes.free_slot(address)
        self._parts.lanes.leave(self._lane)

    async def run(self) -> Sent | None:
        """Return the outcome; None: no byte was sent and the run is to be given back."""
        address = self.claimed.address
        return await (self._probe_and_send() if address is None else self._send_to(address))

    async def _send_to(self, address: str) -> Sent | None:
        """Send, or return None if the permit came too late: another node may have the row by now."""
        permit = await self._acquire(address)
        if permit is None:
            return None
        lanes, started_ms = self._parts.lanes, now_ms()
        try:
            sent = await self._parts.sender.send(self.claimed, address)
        finally:
            lanes.limiter.release(permit, now=time.monotonic())
        lanes.observe(self.claimed.job_id, address, sent.took_ms, now_ms())
        self._count(sent, started_ms)
        return sent

    def _count(self, sent: Sent, started_ms: Millis) -> None:
        """Count a request; its lag only if it is the first one for the run."""
        group, is_first = str(self.claimed.job_group), self.claimed.attempt == 1 and not self._is_sent
        self._is_sent = True
        FIRES_SENT.add(group, sent.verdict.fate.value)
        SEND_DURATION.observe(sent.took_ms / 1000)
        if is_first:
            lag_ms = started_ms - self.claimed.due_ms
            FIRE_LAG.observe(lag_ms / 1000)
            if lag_ms > LATE_MS:
                FIRES_LATE.add(group)

    async def _acquire(self, address: str) -> Permit | None:
        """Wait for a permit until the deadline; None: it came too late or not at all."""
        lanes = self._parts.lanes
        acquired = lanes.limiter.acquire(self._lane, address, now=time.monotonic(), until=self._start_before)
        permit = acquired if isinstance(acquired, Permit) else await acquired
        if permit is None:
            lanes.stop_prefetch(address)
        elif time.monotonic() > self._start_before:
            self._parts.pace.shrink()
            lanes.limiter.release(permit, now=time.monotonic())
            return None
        return permit

    async def _probe_and_send(self) -> Sent | None:
        """Send to the first candidate that accepts the probe, or to the next if it then refuses the run."""
        parts, fresh_until = self._parts, self._start_before
        search = CandidateSearch(parts.sender, self.claimed)
        try:
            while address := await search.next_candidate(stopping=parts.stopping):
                parts.lanes.take_slot(address)
                self._slots.append(address)
                late = time.monotonic() > fresh_until
                sent = await self._send_to(address) if await self._fix(address, late=late) else None
                if sent is None:
                    return None
                search.add(sent)
                if sent.verdict.fate is not Fate.REFUSED:
                    search.close()
                    return sent._replace(trace=tuple(search.lines), unreachable=tuple(search.unreachable))
            return None if parts.stopping() else no_candidate(self.claimed, search.lines, search.unreachable)
        finally:
            search.close()

    async def _fix(self, address: str, *, late: bool) -> bool:
        """Store the candidate before the first byte is sent; the new lease covers probing the others."""
        parts, lease_ms = self._parts, self._parts.pace.lease_ms
        probe_ms = probing_ms(parts.claimer, len(self.claimed.peers))

        def fix(session: Session, group: Sequence[Claimed]) -> bool:
            lease = Lease(parts.claimer.node, now_ms() + lease_ms + probe_ms)
            return fix_address(session, group[0], address, lease, late=late)

        try:
            fixed = await parts.writer.write([self.claimed], timed(fix, lease_ms))
        except AWAY as exc:  # nothing was sent to this candidate: the run is given back
            fault_log.write(logger, "candidate not fixed", exc)
            return False
        for stored, timing in fixed:
            self._start_before = parts.pace.start_before(timing, time.monotonic())
            return stored
        return False
