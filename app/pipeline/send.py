"""Sending: one POST for one claimed run, and its outcome as a value.

docs/reference/pipeline.md, section 4. The POST is repeated in one case: the executor does not serve the path
and so has not read the run (docs/reference/protocol.md, section 9.1).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

from app.clock import Millis, elapsed_s, now_ms
from app.domain.enums import RouteStrategy
from app.domain.runs.evidence import Fate, Verdict, is_unknown_path, judge_answer, judge_silence
from app.domain.runs.trace_templates import (
    ANSWERED,
    ANSWERED_WITH,
    NO_CANDIDATE,
    PROBE_NO,
    PROBE_YES,
    SENT_TO,
    UNANSWERED,
    UNANSWERED_WITH,
    fill,
    write,
)
from app.domain.runs.trigger_report import one_line
from app.executors.calls import CallOutcome, Delivery, Peer, refuses_token
from app.executors.dispatch_client import DispatchClient
from app.pipeline.claim_trace import LINES_KEPT
from app.pipeline.claimed_run import PROBE_MS, ClaimedRun
from app.settings.config import Config
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import SUCCESS, JobRequest

#: path of a run up to XXL-JOB 3.4, and from 3.5 on
RUN, TRIGGER = "run", "trigger"
#: addresses known to serve TRIGGER; when full, all are dropped, which costs each an extra call
TRIGGER_ADDRESSES_MAX = 5_000


class SendOutcome(NamedTuple):
    """Outcome of one claimed run; ``trace`` has the lines about the send."""

    claim: ClaimedRun
    verdict: Verdict
    trace: tuple[str, ...]
    took_ms: Millis
    boot_id: str = ""
    #: addresses that could not be connected to
    unreachable: tuple[str, ...] = ()
    #: when the request was sent; 0: none was
    sent_ms: Millis = 0


class _Question(NamedTuple):
    """Request of a probe: at one address the same for all FAILOVER runs, and for those of a BUSYOVER job."""

    peer: Peer
    action: str
    content: bytes


class ProbeAnswer(NamedTuple):
    """Answer of a candidate; ``line`` is for the trace."""

    yes: bool
    line: str
    unreachable: bool


#: called with a function that returns the outcome as ``send`` does, or raises the error that prevented it
SendCallback = Callable[[Callable[[], SendOutcome | None]], object]


class Sender:
    """Sends claimed runs; create, use and close it in one event loop."""

    def __init__(self, config: Config) -> None:
        self._client = DispatchClient(config.executor_networks)
        self._timeout_s = config.trigger_timeout_s
        self._at_trigger: set[str] = set()
        #: tasks that repeat a POST of sends without a task of their own
        self._repeating: set[asyncio.Task[CallOutcome]] = set()
        #: the latest probe of each question in flight, and when it was sent, by ``elapsed_s``
        self._probes: dict[_Question, tuple[asyncio.Task[CallOutcome], float]] = {}

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def start(self, claim: ClaimedRun, address: str, callback: SendCallback) -> bool:
        """POST the run without a task; False: no byte was sent, and it takes ``send``.

        ``callback`` is called once, in a later round of the loop.
        """

        def on_answer(outcome: CallOutcome) -> None:
            if outcome.reply is not None and is_unknown_path(outcome.reply, RUN):
                self._start_at_trigger(claim, address, outcome, callback)
            else:
                callback(partial(_outcome_of, claim, address, outcome))

        peer = claim.peers[address]
        if address in self._at_trigger or peer.former_token:
            return False
        content = claim.content_for(address)
        return self._client.start(peer, RUN, content, timeout_s=self._timeout_s, on_outcome=on_answer)

    def _start_at_trigger(
        self, claim: ClaimedRun, address: str, first_outcome: CallOutcome, callback: SendCallback
    ) -> None:
        def on_end(task: asyncio.Task[CallOutcome]) -> None:
            self._repeating.discard(task)
            callback(lambda: _outcome_of(claim, address, task.result()))

        task = asyncio.create_task(self._send_to(TRIGGER, claim, address, first_outcome))
        self._repeating.add(task)
        task.add_done_callback(on_end)

    async def send(self, claim: ClaimedRun, address: str) -> SendOutcome | None:
        """POST the run. Never raises for failures of the executor or the network.

        None: this host could not open a connection, and the executor has not read the run.
        """
        path = TRIGGER if address in self._at_trigger else RUN
        outcome = await self._client.call(
            claim.peers[address], path, claim.content_for(address), timeout_s=self._timeout_s
        )
        if outcome.reply is not None and is_unknown_path(outcome.reply, path):
            outcome = await self._send_to(TRIGGER if path == RUN else RUN, claim, address, outcome)
        return _outcome_of(claim, address, outcome)

    async def _send_to(
        self, path: str, claim: ClaimedRun, address: str, first_outcome: CallOutcome
    ) -> CallOutcome:
        """POST the run to the other path in the time left; remember the path unless it is unknown as well."""
        self._remember_path(address, path)
        left_s = self._timeout_s - first_outcome.took_ms / 1000
        if left_s <= 0:
            return first_outcome
        outcome = await self._client.call(
            claim.peers[address], path, claim.content_for(address), timeout_s=left_s
        )
        if outcome.reply is not None and is_unknown_path(outcome.reply, path):
            self._remember_path(address, RUN)
            return first_outcome
        return outcome._replace(took_ms=first_outcome.took_ms + outcome.took_ms)

    def _remember_path(self, address: str, path: str) -> None:
        if path == RUN:
            self._at_trigger.discard(address)
            return
        if len(self._at_trigger) >= TRIGGER_ADDRESSES_MAX:
            self._at_trigger.clear()
        self._at_trigger.add(address)

    async def probe(self, claim: ClaimedRun, address: str) -> ProbeAnswer | None:
        """Probe whether a candidate is alive (FAILOVER) or idle (BUSYOVER).

        Concurrent probes with the same question share a request. None: this host could not open a connection.
        """
        action = probe_action(claim)
        content = dump_json(JobRequest(claim.job_id).to_wire()) if action == "idleBeat" else b"{}"
        outcome = await asyncio.shield(self._probe(_Question(claim.peers[address], action, content)))
        if outcome.delivery is Delivery.UNTRIED:
            return None
        yes = outcome.reply is not None and outcome.reply.code == SUCCESS
        reason = outcome.reason
        if outcome.reply is not None:
            message = f": {one_line(outcome.reply.msg)}" if outcome.reply.msg else ""
            reason = f"code {outcome.reply.code}{message}"
        line = trace_probe(claim, address, reason, outcome.took_ms, yes=yes)
        return ProbeAnswer(yes, line, outcome.delivery is Delivery.NO)

    def _probe(self, question: _Question) -> asyncio.Task[CallOutcome]:
        """Return the probe in flight, or a new one if that was sent PROBE_MS ago or earlier.

        So the shared answer of a silent candidate costs a run at most PROBE_MS of its timeout.
        """
        now = elapsed_s()
        latest, sent_s = self._probes.get(question, (None, now))
        if latest is not None and (now - sent_s) * 1000 < PROBE_MS:
            return latest
        probe = asyncio.create_task(self._client.call(*question, timeout_s=self._timeout_s))
        self._probes[question] = probe, now
        probe.add_done_callback(partial(self._forget, question))
        return probe

    def _forget(self, question: _Question, probe: asyncio.Task[CallOutcome]) -> None:
        if self._probes.get(question, (None,))[0] is probe:
            del self._probes[question]


def probe_action(claim: ClaimedRun) -> str:
    """Return the probe of the run's route: ``idleBeat`` or ``beat``."""
    return "idleBeat" if claim.route is RouteStrategy.BUSYOVER else "beat"


def trace_probe(claim: ClaimedRun, address: str, reason: str, took_ms: Millis, *, yes: bool = False) -> str:
    """Return the trace line of one probe."""
    template = PROBE_YES if yes else PROBE_NO
    return fill(template, action=probe_action(claim), address=address, reason=reason, ms=took_ms)


def _outcome_of(claim: ClaimedRun, address: str, outcome: CallOutcome) -> SendOutcome | None:
    if outcome.delivery is Delivery.UNTRIED:
        return None
    verdict = _judge(outcome, claim, address)
    if verdict.text:  # Before it is cut, which could cut a value, too.
        verdict = replace(verdict, text=claim.mask_text(verdict.text))
    unreachable = (address,) if outcome.delivery is Delivery.NO else ()
    trace, sent_ms = _trace(address, outcome, verdict), now_ms() - outcome.took_ms
    return SendOutcome(claim, verdict, trace, outcome.took_ms, outcome.boot_id, unreachable, sent_ms)


def _judge(outcome: CallOutcome, claim: ClaimedRun, address: str) -> Verdict:
    if (reply := outcome.reply) is not None:
        may_have_been_sent_here = claim.was_sent_to(address)
        if may_have_been_sent_here and not claim.peers[address].token and refuses_token(reply):
            return Verdict(Fate.UNKNOWN, reply.code, reply.msg or "")  # It may have the run all the same.
        return judge_answer(reply, may_have_been_sent_here=may_have_been_sent_here)
    return judge_silence(
        is_delivered=outcome.delivery is not Delivery.NO,
        reason=outcome.reason,
        is_remembered=claim.is_remembered,
    )


def _trace(address: str, outcome: CallOutcome, verdict: Verdict) -> tuple[str, ...]:
    if outcome.reply is not None and not verdict.text:
        return _sent_line(address), _answered_line(verdict.fate, outcome.took_ms, verdict.code)
    template = ANSWERED_WITH if outcome.reply is not None else UNANSWERED_WITH if verdict.text else UNANSWERED
    values = {"fate": verdict.fate, "ms": outcome.took_ms, "code": verdict.code}
    return _sent_line(address), write(template, **values, reason=one_line(verdict.text))


@lru_cache(LINES_KEPT)
def _sent_line(address: str) -> str:
    return write(SENT_TO, address=address)


@lru_cache(LINES_KEPT)
def _answered_line(fate: Fate, took_ms: Millis, code: int) -> str:
    return write(ANSWERED, fate=fate, ms=took_ms, code=code)


def no_candidate(claim: ClaimedRun, lines: Sequence[str], unreachable: Sequence[str] = ()) -> SendOutcome:
    """Return the outcome of a run without an available candidate: a definite refusal."""
    verdict = Verdict(Fate.REFUSED, 500, "no executor is available")
    return SendOutcome(
        claim,
        verdict,
        (*lines, NO_CANDIDATE),
        0,
        unreachable=tuple(unreachable),
    )
