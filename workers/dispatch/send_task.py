"""Send of one claimed run: permit, candidates if the route probes, and one POST.

Belongs to the dispatcher's loop.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis, elapsed_s, now_ms
from app.database.batch_writer import BatchWriter
from app.database.faults import AWAY, fault_log
from app.domain.runs.evidence import Fate
from app.pipeline.claimed_run import ClaimedRun, Claimer, probing_ms
from app.pipeline.record import Lease, fix_address
from app.pipeline.send import Sender, SendOutcome, no_candidate
from app.runtime.logging import request_id
from app.runtime.metrics import FIRE_LAG, FIRES_LATE, FIRES_SENT, SEND_DURATION
from workers.dispatch.candidates import CandidateSearch
from workers.dispatch.claim_pace import ClaimPace, with_timing
from workers.dispatch.lanes import Lanes
from workers.dispatch.send_limiter import Permit

logger = logging.getLogger(__name__)

#: a fire sent later than this after its instant counts as late
LATE_MS: Millis = 1_000


#: called with a run and its outcome
EndCallback = Callable[["SendTask", SendOutcome | None], None]


@dataclass(frozen=True, slots=True)
class SendServices:
    """Services that all sends of a dispatcher share."""

    lanes: Lanes
    sender: Sender
    writer: BatchWriter
    pace: ClaimPace
    claimer: Claimer
    stopping: Callable[[], bool]


class SendTask:
    """Send of a claimed run, counted in its lane and at its address; calls ``on_end`` once, with the outcome.

    Outcome None: no byte was sent and the run is to be given back, or see ``is_broken``. A run whose address
    is known, and has an idle connection, needs no task of asyncio.
    """

    __slots__ = (
        "_on_end",
        "_is_sent",
        "_lane",
        "_services",
        "_slots",
        "_start_before",
        "_task",
        "claim",
        "is_broken",
    )

    def __init__(
        self, services: SendServices, claim: ClaimedRun, start_before: float, on_end: EndCallback
    ) -> None:
        self._services = services
        self.claim = claim
        #: deadline for starting the send, by ``elapsed_s``: other nodes go on while this host is suspended
        self._start_before = start_before
        self._on_end = on_end
        self._lane = services.lanes.lane_of(claim.job_id)
        self._slots: list[str] = []
        self._is_sent = False
        self._task: asyncio.Task[None] | None = None
        #: an error ended it: the resolver takes over when the lease has expired
        self.is_broken = False

        services.lanes.enter(self._lane, claim.address)
        if claim.address is not None:
            self._slots.append(claim.address)

    def start(self) -> None:
        """Send the run."""
        lanes, address = self._services.lanes, self.claim.address
        if address is None:
            self._run(self._probe_and_send())
            return
        acquisition = lanes.limiter.acquire(self._lane, address, now=elapsed_s(), until=self._start_before)
        if isinstance(acquisition, Permit):
            self._start_send(address, acquisition)
        else:
            acquisition.add_done_callback(lambda future: self._start_send(address, future.result()))

    def give_back(self) -> None:
        """End it unsent, instead of ``start``."""
        self._end(None)

    def _start_send(self, address: str, permit: Permit | None) -> None:
        """Send with a permit, if it came in time, at best without a task."""
        permit = self._in_time(address, permit)
        if permit is None:
            self._end(None)
            return
        on_answer = partial(self._on_answer, address, permit, now_ms())
        try:
            if self._services.sender.start(self.claim, address, on_answer):
                return
        except Exception:
            self._services.lanes.limiter.release(permit, now=elapsed_s())
            self._break()
        else:
            self._run(self._send_permitted(address, permit))

    def _on_answer(
        self, address: str, permit: Permit, started_ms: Millis, outcome: Callable[[], SendOutcome | None]
    ) -> None:
        """The end of a send without a task, so every exception is handled here."""
        self._services.lanes.limiter.release(permit, now=elapsed_s())
        try:
            result = outcome()
            self._observe(address, started_ms, result)
        except Exception:
            self._break()
        else:
            self._end(result)

    def _run(self, sending: Coroutine[Any, Any, SendOutcome | None]) -> None:
        self._task = asyncio.create_task(self._ended_by(sending))

    async def _ended_by(self, sending: Coroutine[Any, Any, SendOutcome | None]) -> None:
        """The body of a task, so every exception is handled here."""
        if self.claim.request_id:
            request_id.set(self.claim.request_id)  # Each task has a context of its own.
        try:
            outcome = await sending
        except Exception:
            self._break()
        else:
            self._end(outcome)

    def _break(self) -> None:
        logger.exception("send failed log_id=%s", self.claim.log_id)
        self.is_broken = True
        self._end(None)

    def _end(self, outcome: SendOutcome | None) -> None:
        """Give back what the run holds and hand over the outcome."""
        for address in self._slots:
            self._services.lanes.free_slot(address)
        self._services.lanes.leave(self._lane)
        if outcome is not None and self.claim.request_id:
            _log_sent(outcome)
        self._on_end(self, outcome)

    async def _send_to(self, address: str) -> SendOutcome | None:
        """Send, or return None if the permit came too late: another node may have the row by now."""
        limiter, now = self._services.lanes.limiter, elapsed_s()
        acquisition = limiter.acquire(self._lane, address, now=now, until=self._start_before)
        permit = self._in_time(address, acquisition if isinstance(acquisition, Permit) else await acquisition)
        return None if permit is None else await self._send_permitted(address, permit)

    async def _send_permitted(self, address: str, permit: Permit) -> SendOutcome | None:
        started_ms = now_ms()
        try:
            outcome = await self._services.sender.send(self.claim, address)
        finally:
            self._services.lanes.limiter.release(permit, now=elapsed_s())
        self._observe(address, started_ms, outcome)
        return outcome

    def _observe(self, address: str, started_ms: Millis, outcome: SendOutcome | None) -> None:
        """Record the time of the answer, and count the request; its lag only if it is the first one.

        None: none was sent.
        """
        if outcome is None:
            return
        self._services.lanes.observe(self.claim.job_id, address, outcome.took_ms, now_ms())
        group, is_first = str(self.claim.job_group), self.claim.attempt == 1 and not self._is_sent
        self._is_sent = True
        FIRES_SENT.add(group, outcome.verdict.fate.value)
        SEND_DURATION.observe(outcome.took_ms / 1000)
        if is_first:
            lag_ms = started_ms - self.claim.due_ms
            FIRE_LAG.observe(lag_ms / 1000)
            if lag_ms > LATE_MS:
                FIRES_LATE.add(group)

    def _in_time(self, address: str, permit: Permit | None) -> Permit | None:
        """Return a permit unless it came too late, or not at all (None)."""
        lanes = self._services.lanes
        if permit is None:
            lanes.stop_prefetch(address)
        elif elapsed_s() > self._start_before:
            self._services.pace.shrink()
            lanes.limiter.release(permit, now=elapsed_s())
            return None
        return permit

    async def _probe_and_send(self) -> SendOutcome | None:
        """Send to the first candidate that accepts the probe, or to the next if it then refuses the run."""
        services, fresh_until = self._services, self._start_before
        search = CandidateSearch(services.sender, self.claim)
        try:
            while address := await self._next_candidate(search):
                services.lanes.take_slot(address)
                self._slots.append(address)
                late = elapsed_s() > fresh_until
                outcome = await self._send_to(address) if await self._fix(address, late=late) else None
                if outcome is None:
                    return None
                search.add(outcome)
                if outcome.verdict.fate is not Fate.REFUSED:
                    search.close()
                    return outcome._replace(trace=tuple(search.lines), unreachable=tuple(search.unreachable))
            if services.stopping() or search.is_given_up:
                return None
            return no_candidate(self.claim, search.lines, search.unreachable)
        finally:
            search.close()

    async def _next_candidate(self, search: CandidateSearch) -> str | None:
        """Search for a candidate; a search that takes long is as slow as a send."""
        lanes, started_s = self._services.lanes, elapsed_s()
        lanes.start_search(self._lane, self.claim.fire_id, started_s)
        try:
            return await search.next_candidate(stopping=self._services.stopping)
        finally:
            lanes.end_search(self.claim.fire_id)
            lanes.observe_search(self.claim.job_id, round((elapsed_s() - started_s) * 1000), now_ms())

    async def _fix(self, address: str, *, late: bool) -> bool:
        """Store the candidate before the first byte is sent; the new lease covers probing the others."""
        services, lease_ms = self._services, self._services.pace.lease_ms
        probe_ms = probing_ms(services.claimer, len(self.claim.peers))

        def fix(session: Session, group: Sequence[ClaimedRun]) -> bool:
            lease = Lease(services.claimer.node, now_ms() + lease_ms + probe_ms)
            return fix_address(session, group[0], address, lease, late=late)

        try:
            results = await services.writer.write([self.claim], with_timing(fix, lease_ms))
        except AWAY as exc:  # Nothing was sent to this candidate: the run is given back.
            fault_log.write(logger, "candidate not fixed", exc)
            return False
        for is_stored, timing in results:
            self._start_before = services.pace.start_before(timing, elapsed_s())
            return is_stored
        return False


def _log_sent(outcome: SendOutcome) -> None:
    """Log the outcome of a run that a user waits for; those of schedules have their trace."""
    token, fate = request_id.set(outcome.claim.request_id), outcome.verdict.fate.value
    logger.info("run sent log_id=%s fate=%s ms=%s", outcome.claim.log_id, fate, outcome.took_ms)
    request_id.reset(token)
