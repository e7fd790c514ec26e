"""Evidence about a run from answers, timeouts and probes, and the decision of the resolver.

Source: docs/reference/reliability.md, sections 3 and 4; docs/reference/clients.md, sections A4 and A5.
"""

from dataclasses import dataclass
from enum import StrEnum

from app.domain.enums import Delivery, FireState, NotStarted
from app.domain.runs.trace_templates import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXECUTOR_GONE,
    EXECUTOR_HAS_IT,
    EXECUTOR_IS,
    EXECUTOR_SILENT,
    LOST_AT_MOST_ONCE,
    LOST_BEFORE_START,
    NO_EVIDENCE,
    NOT_STARTED,
    PERHAPS_OURS,
    REPEAT_LOST,
    REPEATED,
    RESULT_LOST,
    RUN_LOST,
    STARTS_ONCE,
    fill,
)
from executor_client.wire.protocol import FAIL, MSG_DISCARD_LATER, SUCCESS, Reply, is_repeated_trigger

#: statuses of gateways, and 520 and 524 of Cloudflare, after which the request may have been forwarded
AMBIGUOUS_STATUS = ("HTTP status 502", "HTTP status 504", "HTTP status 520", "HTTP status 524")
#: Envoy's text in a 503 answer for a connection that ended without an answer
WITHOUT_ANSWER = "reset before headers"
#: its reasons in that text for which it has forwarded nothing
NOT_FORWARDED = ("connection failure", "connection timeout", "overflow")
#: in its text if the reason is only that of the last of several attempts
RETRIED = "retried"


class Fate(StrEnum):
    """Fate of one send."""

    ACCEPTED = "accepted"
    #: the executor certainly does not have the run
    REFUSED = "refused"
    #: the executor may or may not have the run
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Fate of one send, with the text for the trace."""

    fate: Fate
    code: int
    text: str


#: texts of a refusal that the first send of the run may have caused itself: its job is busy there
BUSY_TEXTS = (MSG_DISCARD_LATER.lower(), "busy")


def judge_answer(reply: Reply, *, may_have_been_sent_here: bool) -> Verdict:
    """Judge an answer to ``/run``.

    ``may_have_been_sent_here``: an earlier send of this run may have reached this executor.
    """
    text = reply.msg or ""
    if reply.code == SUCCESS:
        return Verdict(Fate.ACCEPTED, reply.code, text)
    if is_repeated_trigger(reply):
        return Verdict(Fate.ACCEPTED, SUCCESS, fill(REPEATED, said=text))
    if _may_have_been_forwarded(text):
        return Verdict(Fate.UNKNOWN, reply.code, text)
    if may_have_been_sent_here and any(busy in text.lower() for busy in BUSY_TEXTS):
        return Verdict(Fate.UNKNOWN, reply.code, fill(PERHAPS_OURS, said=text))
    return Verdict(Fate.REFUSED, reply.code, text)


def why_not_started(verdict: Verdict, *, is_unreachable: bool) -> NotStarted:
    """Return why an executor did not take a run whose send is a definite refusal."""
    if MSG_DISCARD_LATER.lower() in verdict.text.lower():
        return NotStarted.OVERLAP
    return NotStarted.NO_INSTANCE if is_unreachable else NotStarted.REFUSED


def _may_have_been_forwarded(text: str) -> bool:
    """Whether a proxy that answers with this text in place of the executor may have forwarded the request."""
    if text.startswith(AMBIGUOUS_STATUS):
        return True
    reason_text = text.lower() if text.startswith("HTTP status 503") else ""
    if WITHOUT_ANSWER not in reason_text:
        return False
    return RETRIED in reason_text or not any(reason in reason_text for reason in NOT_FORWARDED)


def is_unknown_path(reply: Reply, action: str) -> bool:
    """Whether an executor refused a request because it does not serve ``/<action>``."""
    return (
        reply.well_formed and reply.code == FAIL and f"uri-mapping(/{action}) not found" in (reply.msg or "")
    )


def judge_silence(*, is_delivered: bool, reason: str, is_remembered: bool = False) -> Verdict:
    """Judge a request without an answer; ``is_delivered`` False: certainly no byte of it was written.

    ``is_remembered``: the executor may have accepted an earlier send of this run and would start it after a
    restart.
    """
    return Verdict(Fate.UNKNOWN if is_delivered or is_remembered else Fate.REFUSED, 500, reason)


class Sign(StrEnum):
    """Evidence sign: combined finding of the probes of one check."""

    #: the job is busy there, or the run's log exists and the job is busy
    BUSY = "busy"
    #: idle, and there is a log of this run: it has started and ended
    ENDED = "ended"
    #: idle, and the executor reports that there is no log of this run
    NO_TRACE = "no trace"
    #: the executor answers, but proves nothing
    INCONCLUSIVE = "inconclusive"
    #: the executor does not answer
    SILENT = "silent"


class ResolveAction(StrEnum):
    """What the resolver does with a run after a check."""

    WAIT = "wait"
    #: leave the run alone: it is running, or waiting in the executor's queue
    STARTED = "started"
    #: same log id, same address
    SEND_AGAIN = "send again"
    #: same log id, another address
    SEND_ELSEWHERE = "send elsewhere"
    #: its fate cannot be determined: the run ends with an alarm, and a late callback still counts
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence about a run, gathered by one check."""

    state: FireState
    delivery: Delivery
    sign: Sign
    #: our own client: it starts a log id at most once, even across restarts
    durable: bool
    #: the address is in the registry or was entered by a user
    is_registered: bool
    #: earlier checks in a row with the same finding: no trace (UNKNOWN), idle or silent (ACCEPTED)
    probes: int
    #: sends so far
    attempt: int
    #: ms since the fate became unknown, or since the acceptance
    age_ms: int
    #: a console is running, so a result could have arrived
    reachable: bool = True
    #: a manual group with its own token no longer has the address, or its group was deleted: nothing is sent
    #: there
    withheld: bool = False

    @property
    def again(self) -> "ResolveAction":
        """How the run is sent again under at_least_once."""
        return ResolveAction.SEND_ELSEWHERE if self.withheld else ResolveAction.SEND_AGAIN


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of a check: the action and its reason, when to check again, how many checks agree so far."""

    action: ResolveAction
    reason: str
    wait_ms: int = 0
    probes: int = 0


#: earliest check of an UNKNOWN run at a third-party executor: by then no request is still on its way
FENCE_MS = 5_000
#: without evidence within this time a run is unresolved
UNKNOWN_MAX_MS = 20_000
#: period of the checks of accepted runs, and the shorter one after a check that found the job idle
CHECK_MS = 15_000
IDLE_CHECK_MS = 5_000
#: checks that must find "no trace" before it counts
PROBES_NEEDED = 2
#: idle or silent checks before a result counts as lost: first 5 s, then 15 s apart, over 90 s in total
PROBES_LOST = 8
#: most sends of a run
ATTEMPTS_MAX = 10
#: most sends of a run to a third-party executor, on evidence
FOREIGN_ATTEMPTS_MAX = 3


def decide(evidence: Evidence) -> Decision:
    """Decide what to do with a run of unknown fate; never by age alone while there is evidence.

    Source: docs/reference/pipeline.md, section 7.
    """
    return _judge_unknown(evidence) if evidence.state is FireState.UNKNOWN else _judge_accepted(evidence)


def _judge_unknown(evidence: Evidence) -> Decision:
    may_repeat = evidence.durable and not evidence.withheld and evidence.delivery is not Delivery.AT_MOST_ONCE
    if evidence.sign in (Sign.BUSY, Sign.ENDED) and not may_repeat:
        return Decision(ResolveAction.STARTED, fill(EXECUTOR_HAS_IT, sign=evidence.sign), CHECK_MS)
    if evidence.delivery is Delivery.AT_MOST_ONCE:
        return _wait_or_give_up(evidence, AT_MOST_ONCE)
    if may_repeat and evidence.attempt < ATTEMPTS_MAX and evidence.sign is not Sign.SILENT:
        return Decision(ResolveAction.SEND_AGAIN, STARTS_ONCE)
    if evidence.delivery is Delivery.AT_LEAST_ONCE and evidence.attempt < ATTEMPTS_MAX:
        return _repeat(evidence)
    checks = evidence.probes + 1
    may_send = not evidence.withheld and evidence.attempt < FOREIGN_ATTEMPTS_MAX
    if evidence.sign is Sign.NO_TRACE and evidence.age_ms >= FENCE_MS and may_send:
        if checks >= PROBES_NEEDED:
            return Decision(ResolveAction.SEND_AGAIN, fill(NOT_STARTED, n=checks, ms=IDLE_CHECK_MS))
        return Decision(ResolveAction.WAIT, "idle and without a log", IDLE_CHECK_MS, checks)
    return _wait_or_give_up(evidence, fill(EXECUTOR_IS, sign=evidence.sign))


def _wait_or_give_up(evidence: Evidence, why: str) -> Decision:
    if evidence.age_ms >= UNKNOWN_MAX_MS:
        reason = fill(NO_EVIDENCE, seconds=UNKNOWN_MAX_MS // 1000, why=why)
        return Decision(ResolveAction.UNRESOLVED, reason)
    return Decision(ResolveAction.WAIT, why, IDLE_CHECK_MS)


def _repeat(evidence: Evidence) -> Decision:
    if evidence.sign is Sign.SILENT:
        if not evidence.is_registered:
            return Decision(ResolveAction.SEND_ELSEWHERE, EXECUTOR_GONE)
        if evidence.age_ms < UNKNOWN_MAX_MS:
            return Decision(ResolveAction.WAIT, fill(EXECUTOR_IS, sign=evidence.sign), IDLE_CHECK_MS)
        reason = fill(EXECUTOR_SILENT, seconds=UNKNOWN_MAX_MS // 1000)
        return Decision(ResolveAction.SEND_ELSEWHERE, reason)
    if evidence.age_ms >= FENCE_MS:
        return Decision(evidence.again, AT_LEAST_ONCE)
    return Decision(ResolveAction.WAIT, "the request may still be on its way", FENCE_MS)


def _judge_accepted(evidence: Evidence) -> Decision:
    if evidence.sign is Sign.BUSY:
        return Decision(ResolveAction.WAIT, "running", CHECK_MS)
    if not evidence.reachable:  # Its absence proves nothing, as no result could arrive.
        return Decision(
            ResolveAction.WAIT, "no console is running to take a result", CHECK_MS, evidence.probes
        )
    probes = evidence.probes + 1
    may_send = not (evidence.durable or evidence.withheld) and evidence.attempt < FOREIGN_ATTEMPTS_MAX
    if evidence.sign is Sign.NO_TRACE and probes >= PROBES_NEEDED and may_send:
        if evidence.delivery is Delivery.AT_MOST_ONCE:
            return Decision(ResolveAction.UNRESOLVED, LOST_AT_MOST_ONCE)
        return Decision(ResolveAction.SEND_AGAIN, LOST_BEFORE_START)
    if probes >= PROBES_LOST:
        return _give_up_accepted(evidence)
    wait_ms = IDLE_CHECK_MS if probes < PROBES_NEEDED else CHECK_MS
    return Decision(ResolveAction.WAIT, fill(EXECUTOR_IS, sign=evidence.sign), wait_ms, probes)


def _give_up_accepted(evidence: Evidence) -> Decision:
    if evidence.delivery is Delivery.AT_LEAST_ONCE and evidence.attempt < ATTEMPTS_MAX:
        is_gone = evidence.sign is Sign.SILENT and not evidence.is_registered
        return Decision(ResolveAction.SEND_ELSEWHERE if is_gone else evidence.again, REPEAT_LOST)
    reason = RESULT_LOST if evidence.sign is Sign.ENDED else fill(RUN_LOST, sign=evidence.sign)
    return Decision(ResolveAction.UNRESOLVED, reason)


#: complete content sent for a log that does not exist, by Java, our own client and pyxxl
ABSENT_LOGS = ("readLog fail, logFile not exists", "readLog fail, logFile not found", "No such logid logs.")
#: texts of a refusal to read a log that does not exist
ABSENT_LOG_REFUSALS = ("logfile not exist", "log not found", "log not exist", "no such file", "no such log")
#: refusals of ``/idleBeat`` that are not about the job, even if well formed
NOT_ABOUT_THE_JOB = ("HTTP status 401", "HTTP status 403", "HTTP status 404", "HTTP status 5")


def judge_probes(*, alive: bool, idle: Reply | None, log: Reply | None) -> Sign:
    """Combine the answers of ``/beat``, ``/idleBeat`` and ``/log``; None: that probe was not possible.

    Only a well-formed answer is evidence, since another program on the same port may answer too.
    """
    if not alive:
        return Sign.SILENT
    if idle is None:
        return Sign.INCONCLUSIVE
    if idle.code != SUCCESS:
        message = idle.msg or ""
        no_answer = not idle.well_formed or idle.code != FAIL or is_unknown_path(idle, "idleBeat")
        return (
            Sign.INCONCLUSIVE
            if no_answer or message.startswith(NOT_ABOUT_THE_JOB) or "token" in message.lower()
            else Sign.BUSY
        )
    if log is None:
        return Sign.INCONCLUSIVE
    if log.code != SUCCESS:
        return Sign.NO_TRACE if refuses_absent(log.msg or "") else Sign.INCONCLUSIVE
    content = log.content.get("logContent") if isinstance(log.content, dict) else log.content
    text = str(content or "").strip()
    if text in ABSENT_LOGS:  # A handler may write these words among others.
        return Sign.NO_TRACE
    return Sign.ENDED if text else Sign.INCONCLUSIVE


def refuses_absent(text: str) -> bool:
    """Whether ``/log`` was refused because the log does not exist.

    An unknown path is a 404 too, and proves nothing.
    """
    if text.startswith("HTTP status 404"):
        return '"code"' in text
    return any(absent in text.lower() for absent in ABSENT_LOG_REFUSALS)
