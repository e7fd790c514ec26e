"""decide() and judge_probes(): every branch is a row.

Source: docs/reference/pipeline.md, section 7; docs/reference/reliability.md, section 4.
"""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.enums import Delivery, FireState
from app.domain.runs.evidence import (
    ATTEMPTS_MAX,
    CHECK_MS,
    FENCE_MS,
    FOREIGN_ATTEMPTS_MAX,
    IDLE_CHECK_MS,
    PROBES_LOST,
    UNKNOWN_MAX_MS,
    Evidence,
    Fate,
    ResolveAction,
    Sign,
    decide,
    judge_answer,
    judge_probes,
    judge_silence,
)
from executor_client.wire.protocol import Reply
from tests.support.truth_table import truth_table

AUTO, ONCE, LEAST = Delivery.AUTO, Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE
BUSY, ENDED, NO_TRACE, INCONCLUSIVE, SILENT = (
    Sign.BUSY,
    Sign.ENDED,
    Sign.NO_TRACE,
    Sign.INCONCLUSIVE,
    Sign.SILENT,
)
WAIT, STARTED, AGAIN, ELSEWHERE, LOST = (
    ResolveAction.WAIT,
    ResolveAction.STARTED,
    ResolveAction.SEND_AGAIN,
    ResolveAction.SEND_ELSEWHERE,
    ResolveAction.UNRESOLVED,
)

UNKNOWN = Evidence(
    FireState.UNKNOWN, AUTO, NO_TRACE, durable=False, is_registered=True, probes=0, attempt=1, age_ms=0
)
ACCEPTED = replace(UNKNOWN, state=FireState.ACCEPTED)


def unknown(**changes: Any) -> Evidence:
    return replace(UNKNOWN, **changes)


def accepted(**changes: Any) -> Evidence:
    return replace(ACCEPTED, **changes)


@truth_table(
    "evidence, action, wait_ms, probes",
    [
        # foreign executor: two probes after the fence
        (unknown(sign=BUSY), STARTED, CHECK_MS, 0),
        (unknown(sign=ENDED), STARTED, CHECK_MS, 0),
        (unknown(sign=BUSY, age_ms=UNKNOWN_MAX_MS), STARTED, CHECK_MS, 0),
        (unknown(age_ms=FENCE_MS - 1), WAIT, IDLE_CHECK_MS, 0),
        (unknown(age_ms=FENCE_MS), WAIT, IDLE_CHECK_MS, 1),
        (unknown(age_ms=FENCE_MS + IDLE_CHECK_MS, probes=1), AGAIN, 0, 0),
        (unknown(age_ms=UNKNOWN_MAX_MS, probes=1), AGAIN, 0, 0),
        (unknown(sign=SILENT), WAIT, IDLE_CHECK_MS, 0),
        (unknown(sign=SILENT, age_ms=UNKNOWN_MAX_MS - 1, probes=1), WAIT, IDLE_CHECK_MS, 0),
        (unknown(sign=SILENT, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(sign=SILENT, age_ms=UNKNOWN_MAX_MS, is_registered=False), LOST, 0, 0),
        (unknown(sign=INCONCLUSIVE, age_ms=FENCE_MS), WAIT, IDLE_CHECK_MS, 0),
        (unknown(sign=INCONCLUSIVE, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(age_ms=FENCE_MS * 2, probes=1, attempt=FOREIGN_ATTEMPTS_MAX), WAIT, IDLE_CHECK_MS, 0),
        (unknown(age_ms=UNKNOWN_MAX_MS, probes=1, attempt=FOREIGN_ATTEMPTS_MAX), LOST, 0, 0),
        # our own client starts a log id at most once: only its answer has to be awaited
        (unknown(durable=True), AGAIN, 0, 0),
        (unknown(durable=True, sign=BUSY), AGAIN, 0, 0),
        (unknown(durable=True, sign=ENDED), AGAIN, 0, 0),
        (unknown(durable=True, sign=INCONCLUSIVE), AGAIN, 0, 0),
        (unknown(durable=True, sign=SILENT), WAIT, IDLE_CHECK_MS, 0),
        (unknown(durable=True, sign=SILENT, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(durable=True, sign=INCONCLUSIVE, attempt=ATTEMPTS_MAX), WAIT, IDLE_CHECK_MS, 0),
        (unknown(durable=True, sign=INCONCLUSIVE, attempt=ATTEMPTS_MAX, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        # at most once: whatever the evidence and the executor
        (unknown(delivery=ONCE, sign=BUSY), STARTED, CHECK_MS, 0),
        (unknown(delivery=ONCE, sign=BUSY, durable=True), STARTED, CHECK_MS, 0),
        (unknown(delivery=ONCE, sign=ENDED, durable=True, age_ms=UNKNOWN_MAX_MS), STARTED, CHECK_MS, 0),
        (unknown(delivery=ONCE, age_ms=FENCE_MS * 2, probes=1), WAIT, IDLE_CHECK_MS, 0),
        (unknown(delivery=ONCE, durable=True), WAIT, IDLE_CHECK_MS, 0),
        (unknown(delivery=ONCE, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        # at least once: after the fence to the same address, elsewhere if it is gone, never while the job is
        # busy there
        (unknown(delivery=LEAST, sign=BUSY, age_ms=FENCE_MS), STARTED, CHECK_MS, 0),
        (unknown(delivery=LEAST, age_ms=FENCE_MS - 1), WAIT, FENCE_MS, 0),
        (unknown(delivery=LEAST, age_ms=FENCE_MS), AGAIN, 0, 0),
        (unknown(delivery=LEAST, sign=INCONCLUSIVE, age_ms=FENCE_MS), AGAIN, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, is_registered=False), ELSEWHERE, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, age_ms=FENCE_MS), WAIT, IDLE_CHECK_MS, 0),
        (unknown(delivery=LEAST, sign=SILENT, age_ms=UNKNOWN_MAX_MS), ELSEWHERE, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, is_registered=False, durable=True), ELSEWHERE, 0, 0),
        (
            unknown(delivery=LEAST, sign=SILENT, is_registered=False, attempt=ATTEMPTS_MAX),
            WAIT,
            IDLE_CHECK_MS,
            0,
        ),
        (unknown(delivery=LEAST, sign=INCONCLUSIVE, age_ms=UNKNOWN_MAX_MS, attempt=ATTEMPTS_MAX), LOST, 0, 0),
        # an executor that may not get the token is not sent the run again
        (unknown(withheld=True, durable=True, sign=INCONCLUSIVE), WAIT, IDLE_CHECK_MS, 0),
        (unknown(withheld=True, durable=True, sign=INCONCLUSIVE, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(withheld=True, sign=INCONCLUSIVE, delivery=LEAST, age_ms=FENCE_MS), ELSEWHERE, 0, 0),
    ],
)
def test_decisions_about_a_run_in_doubt(
    evidence: Evidence, action: ResolveAction, wait_ms: int, probes: int
) -> None:
    decision = decide(evidence)
    assert (decision.action, decision.wait_ms, decision.probes) == (action, wait_ms, probes)
    assert decision.reason


@truth_table(
    "evidence, action, wait_ms, probes",
    [
        (accepted(sign=BUSY, probes=7), WAIT, CHECK_MS, 0),
        (accepted(sign=BUSY, age_ms=10**9), WAIT, CHECK_MS, 0),
        # idle twice, 5 s apart, and no log: lost from the executor's memory before it started
        (accepted(), WAIT, IDLE_CHECK_MS, 1),
        (accepted(probes=1), AGAIN, 0, 0),
        (accepted(probes=1, delivery=LEAST), AGAIN, 0, 0),
        (accepted(probes=1, delivery=ONCE), LOST, 0, 0),
        (accepted(probes=1, attempt=FOREIGN_ATTEMPTS_MAX), WAIT, CHECK_MS, 2),
        (accepted(probes=1, durable=True), WAIT, CHECK_MS, 2),
        # it started and has ended, or cannot be queried: the result may be on its way
        (accepted(sign=ENDED), WAIT, IDLE_CHECK_MS, 1),
        (accepted(sign=ENDED, probes=1), WAIT, CHECK_MS, 2),
        (accepted(sign=SILENT, probes=PROBES_LOST - 2), WAIT, CHECK_MS, PROBES_LOST - 1),
        (accepted(sign=ENDED, probes=PROBES_LOST - 1), LOST, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1), LOST, 0, 0),
        (accepted(sign=INCONCLUSIVE, probes=PROBES_LOST - 1, durable=True), LOST, 0, 0),
        (accepted(sign=ENDED, probes=PROBES_LOST - 1, delivery=LEAST), AGAIN, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, delivery=LEAST), AGAIN, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, delivery=LEAST, is_registered=False), ELSEWHERE, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, delivery=LEAST, attempt=ATTEMPTS_MAX), LOST, 0, 0),
        # without a live console, a missing result proves nothing
        (accepted(probes=1, reachable=False), WAIT, CHECK_MS, 1),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, reachable=False), WAIT, CHECK_MS, PROBES_LOST - 1),
        # one that may not get the token is not probed, and not sent the run again
        (accepted(withheld=True, sign=INCONCLUSIVE), WAIT, IDLE_CHECK_MS, 1),
        (accepted(withheld=True, sign=INCONCLUSIVE, probes=PROBES_LOST - 1), LOST, 0, 0),
        (
            accepted(withheld=True, sign=INCONCLUSIVE, probes=PROBES_LOST - 1, delivery=LEAST),
            ELSEWHERE,
            0,
            0,
        ),
    ],
)
def test_decisions_about_an_accepted_run(
    evidence: Evidence, action: ResolveAction, wait_ms: int, probes: int
) -> None:
    decision = decide(evidence)
    assert (decision.action, decision.wait_ms, decision.probes) == (action, wait_ms, probes)
    assert decision.reason


def test_a_result_is_called_lost_after_ninety_seconds_of_probes_and_not_before() -> None:
    waited_ms, evidence = 0, accepted(sign=ENDED)
    while (decision := decide(evidence)).action is WAIT:
        waited_ms += decision.wait_ms
        evidence = replace(evidence, probes=decision.probes)
    assert decision.action is LOST
    assert 90_000 <= waited_ms <= 110_000
    assert "within 90 s" in decision.reason


@truth_table("delivery", Delivery)
@truth_table("durable", [True, False])
@truth_table("state", [FireState.UNKNOWN, FireState.ACCEPTED])
@truth_table("sign", [NO_TRACE, ENDED, INCONCLUSIVE, SILENT])
def test_no_run_is_probed_for_ever(delivery: Delivery, durable: bool, state: FireState, sign: Sign) -> None:
    """Whatever state it stays in, sending stops in the end and there is an alarm."""
    evidence, age_ms = replace(UNKNOWN, state=state, delivery=delivery, durable=durable, sign=sign), 0
    for _ in range(200):
        decision = decide(replace(evidence, age_ms=age_ms))
        if decision.action is LOST:
            return
        if decision.action in (AGAIN, ELSEWHERE):  # and its outcome is unknown again
            evidence, age_ms = (
                replace(evidence, state=FireState.UNKNOWN, attempt=evidence.attempt + 1, probes=0),
                0,
            )
        elif decision.action is STARTED:
            evidence, age_ms = replace(evidence, state=FireState.ACCEPTED, probes=0), 0
        else:
            assert decision.wait_ms > 0
            evidence, age_ms = replace(evidence, probes=decision.probes), age_ms + decision.wait_ms
    pytest.fail("it never ends")


@truth_table("sign", Sign)
@truth_table("state", [FireState.UNKNOWN, FireState.ACCEPTED])
@truth_table("durable", [True, False])
@truth_table("probes", range(PROBES_LOST + 1))
@truth_table("age_ms", [0, FENCE_MS, UNKNOWN_MAX_MS, 10**9])
def test_at_most_once_is_never_redelivered(
    sign: Sign, state: FireState, durable: bool, probes: int, age_ms: int
) -> None:
    evidence = Evidence(
        state, ONCE, sign, durable=durable, is_registered=False, probes=probes, attempt=1, age_ms=age_ms
    )
    assert decide(evidence).action in (WAIT, STARTED, LOST)


OK = Reply(200)
ABSENT = "readLog fail, logFile not exists"


def log(text: str | None, **more: Any) -> Reply:
    return Reply(200, None, {"logContent": text, **more})


@truth_table(
    "client, idle, found, sign",
    [
        (
            "busy, whatever its log says",
            Reply(500, "job thread is running or has trigger queue."),
            log(ABSENT),
            BUSY,
        ),
        ("litert, busy", Reply.parse(402, b'{"code":402,"msg":"Busy"}'), None, BUSY),
        ("idle, and the log cannot be asked for", OK, None, INCONCLUSIVE),
        ("no answer to idleBeat", None, None, INCONCLUSIVE),
        ("Java, our own client", OK, log(ABSENT, toLineNum=0, isEnd=True), NO_TRACE),
        ("pyxxl", OK, log("No such logid logs.", isEnd=False), NO_TRACE),
        ("a string for a payload", OK, Reply(200, None, ABSENT), NO_TRACE),
        ("an npm client", OK, Reply(500, "ENOENT: no such file or directory"), NO_TRACE),
        ("hyperf", OK, Reply(500, "log not found"), NO_TRACE),
        ("litert", OK, Reply(500, 'HTTP status 404: {"code":404,"msg":"not found"}'), NO_TRACE),
        ("an unserved path", OK, Reply(500, "HTTP status 404: 404 page not found"), INCONCLUSIVE),
        ("another refusal", OK, Reply(500, "The access token is wrong."), INCONCLUSIVE),
        ("a log", OK, log("12:00:00 job execute start\n12:00:01 done"), ENDED),
        (
            "a handler that writes what executors say",
            OK,
            log("12:00:00 the table does not exist\n" + ABSENT),
            ENDED,
        ),
        ("an empty log", OK, log(""), INCONCLUSIVE),
        ("no log at all", OK, log(None), INCONCLUSIVE),
        ("no payload", OK, Reply(200), INCONCLUSIVE),
        (
            "idleBeat refused for the token",
            Reply(500, "The access token is wrong."),
            log(ABSENT),
            INCONCLUSIVE,
        ),
        (
            "idleBeat refused by a status",
            Reply(500, "HTTP status 401: unauthorized"),
            log(ABSENT),
            INCONCLUSIVE,
        ),
        ("no idleBeat", Reply(500, "HTTP status 404: no such path"), log(ABSENT), INCONCLUSIVE),
        ("idleBeat is an error page", Reply(500, "HTTP status 500: <html>"), log(ABSENT), INCONCLUSIVE),
        ("idleBeat says nothing", Reply.parse(200, b""), log(ABSENT), INCONCLUSIVE),
        ("idleBeat is no content", Reply.parse(204, b""), log(ABSENT), INCONCLUSIVE),
        ("idleBeat is a redirect", Reply.parse(302, b""), log(ABSENT), INCONCLUSIVE),
        (
            "idleBeat is plain HTTP to a TLS port",
            Reply.parse(400, b"<h1>400 Bad Request</h1>"),
            log(ABSENT),
            INCONCLUSIVE,
        ),
        ("idleBeat is a page", Reply.parse(200, b"<html>welcome</html>"), log(ABSENT), INCONCLUSIVE),
        ("idleBeat is JSON without a code", Reply.parse(200, b'{"status":"UP"}'), log(ABSENT), INCONCLUSIVE),
        (
            "idleBeat is not served",
            Reply(500, "invalid request, uri-mapping(/idleBeat) not found."),
            log(ABSENT),
            INCONCLUSIVE,
        ),
        (
            "idleBeat is another program's code",
            Reply.parse(200, b'{"code":1001,"msg":"please log in"}'),
            log(ABSENT),
            INCONCLUSIVE,
        ),
        (
            "idleBeat is another program's JSON error",
            Reply.parse(400, b'{"code":10001,"msg":"bad"}'),
            log(ABSENT),
            INCONCLUSIVE,
        ),
    ],
)
def test_probes_are_judged_together(client: str, idle: Reply | None, found: Reply | None, sign: Sign) -> None:
    assert judge_probes(alive=True, idle=idle, log=found) is sign, client


def test_an_executor_that_does_not_answer_is_silent() -> None:
    assert judge_probes(alive=False, idle=None, log=None) is SILENT


@truth_table(
    "sent_here, text, fate",
    [
        (False, "busy", Fate.REFUSED),
        (True, "busy", Fate.UNKNOWN),
        (True, "HTTP status 402: {'msg':'Busy'}", Fate.UNKNOWN),
        (True, "no handler", Fate.REFUSED),
    ],
)
def test_a_busy_executor_may_be_busy_with_our_first_send(sent_here: bool, text: str, fate: Fate) -> None:
    assert judge_answer(Reply(500, text), may_have_been_sent_here=sent_here).fate is fate


@truth_table(
    "delivered, remembered, fate",
    [
        (False, False, Fate.REFUSED),
        (False, True, Fate.UNKNOWN),
        (True, False, Fate.UNKNOWN),
        (True, True, Fate.UNKNOWN),
    ],
)
def test_a_refused_connection_does_not_undo_what_an_executor_remembers(
    delivered: bool, remembered: bool, fate: Fate
) -> None:
    assert judge_silence(is_delivered=delivered, reason="refused", is_remembered=remembered).fate is fate
