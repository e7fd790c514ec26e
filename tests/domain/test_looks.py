"""judge_look() and judge_probe(): every branch is a row.

Source: docs/reference/pipeline.md, section 7; docs/reference/reliability.md, section 4.
"""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.enums import Delivery, FireState
from app.domain.evidence import (
    ATTEMPTS_MAX,
    FENCE_MS,
    FOREIGN_ATTEMPTS_MAX,
    IDLE_LOOK_MS,
    LOOK_MS,
    PROBES_LOST,
    UNKNOWN_MAX_MS,
    Fate,
    Look,
    Outcome,
    Sign,
    judge_answer,
    judge_look,
    judge_probe,
    judge_silence,
)
from executor_client.protocol import Reply

AUTO, ONCE, LEAST = Delivery.AUTO, Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE
BUSY, OVER, NO_TRACE, MUTE, SILENT = Sign.BUSY, Sign.OVER, Sign.NO_TRACE, Sign.MUTE, Sign.SILENT
WAIT, STARTED, AGAIN, ELSEWHERE, LOST = (
    Outcome.WAIT,
    Outcome.STARTED,
    Outcome.SEND_AGAIN,
    Outcome.SEND_ELSEWHERE,
    Outcome.UNRESOLVED,
)

UNKNOWN = Look(
    FireState.UNKNOWN, AUTO, NO_TRACE, durable=False, registered=True, probes=0, attempt=1, age_ms=0
)
ACCEPTED = replace(UNKNOWN, state=FireState.ACCEPTED)


def unknown(**changes: Any) -> Look:
    return replace(UNKNOWN, **changes)


def accepted(**changes: Any) -> Look:
    return replace(ACCEPTED, **changes)


@pytest.mark.parametrize(
    ("look", "outcome", "wait_ms", "probes"),
    [
        # a foreign executor: evidence, twice, behind a fence
        (unknown(sign=BUSY), STARTED, LOOK_MS, 0),
        (unknown(sign=OVER), STARTED, LOOK_MS, 0),
        (unknown(sign=BUSY, age_ms=UNKNOWN_MAX_MS), STARTED, LOOK_MS, 0),
        (unknown(age_ms=FENCE_MS - 1), WAIT, IDLE_LOOK_MS, 0),
        (unknown(age_ms=FENCE_MS), WAIT, IDLE_LOOK_MS, 1),
        (unknown(age_ms=FENCE_MS + IDLE_LOOK_MS, probes=1), AGAIN, 0, 0),
        (unknown(age_ms=UNKNOWN_MAX_MS, probes=1), AGAIN, 0, 0),
        (unknown(sign=SILENT), WAIT, IDLE_LOOK_MS, 0),
        (unknown(sign=SILENT, age_ms=UNKNOWN_MAX_MS - 1, probes=1), WAIT, IDLE_LOOK_MS, 0),
        (unknown(sign=SILENT, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(sign=SILENT, age_ms=UNKNOWN_MAX_MS, registered=False), LOST, 0, 0),
        (unknown(sign=MUTE, age_ms=FENCE_MS), WAIT, IDLE_LOOK_MS, 0),
        (unknown(sign=MUTE, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(age_ms=FENCE_MS * 2, probes=1, attempt=FOREIGN_ATTEMPTS_MAX), WAIT, IDLE_LOOK_MS, 0),
        (unknown(age_ms=UNKNOWN_MAX_MS, probes=1, attempt=FOREIGN_ATTEMPTS_MAX), LOST, 0, 0),
        # our own client: it starts a log id at most once, so there is nothing to wait for but its answer
        (unknown(durable=True), AGAIN, 0, 0),
        (unknown(durable=True, sign=BUSY), AGAIN, 0, 0),
        (unknown(durable=True, sign=OVER), AGAIN, 0, 0),
        (unknown(durable=True, sign=MUTE), AGAIN, 0, 0),
        (unknown(durable=True, sign=SILENT), WAIT, IDLE_LOOK_MS, 0),
        (unknown(durable=True, sign=SILENT, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        (unknown(durable=True, sign=MUTE, attempt=ATTEMPTS_MAX), WAIT, IDLE_LOOK_MS, 0),
        (unknown(durable=True, sign=MUTE, attempt=ATTEMPTS_MAX, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        # at most once: whatever the evidence, and whoever the executor
        (unknown(delivery=ONCE, sign=BUSY), STARTED, LOOK_MS, 0),
        (unknown(delivery=ONCE, sign=BUSY, durable=True), STARTED, LOOK_MS, 0),
        (unknown(delivery=ONCE, sign=OVER, durable=True, age_ms=UNKNOWN_MAX_MS), STARTED, LOOK_MS, 0),
        (unknown(delivery=ONCE, age_ms=FENCE_MS * 2, probes=1), WAIT, IDLE_LOOK_MS, 0),
        (unknown(delivery=ONCE, durable=True), WAIT, IDLE_LOOK_MS, 0),
        (unknown(delivery=ONCE, age_ms=UNKNOWN_MAX_MS), LOST, 0, 0),
        # at least once: after the fence to the same address, elsewhere when that is gone, never while the job is busy there
        (unknown(delivery=LEAST, sign=BUSY, age_ms=FENCE_MS), STARTED, LOOK_MS, 0),
        (unknown(delivery=LEAST, age_ms=FENCE_MS - 1), WAIT, FENCE_MS, 0),
        (unknown(delivery=LEAST, age_ms=FENCE_MS), AGAIN, 0, 0),
        (unknown(delivery=LEAST, sign=MUTE, age_ms=FENCE_MS), AGAIN, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, registered=False), ELSEWHERE, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, age_ms=FENCE_MS), WAIT, IDLE_LOOK_MS, 0),
        (unknown(delivery=LEAST, sign=SILENT, age_ms=UNKNOWN_MAX_MS), ELSEWHERE, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, registered=False, durable=True), ELSEWHERE, 0, 0),
        (unknown(delivery=LEAST, sign=SILENT, registered=False, attempt=ATTEMPTS_MAX), WAIT, IDLE_LOOK_MS, 0),
        (unknown(delivery=LEAST, sign=MUTE, age_ms=UNKNOWN_MAX_MS, attempt=ATTEMPTS_MAX), LOST, 0, 0),
    ],
)
def test_a_run_of_unknown_fate(look: Look, outcome: Outcome, wait_ms: int, probes: int) -> None:
    step = judge_look(look)
    assert (step.outcome, step.wait_ms, step.probes) == (outcome, wait_ms, probes)
    assert step.reason


@pytest.mark.parametrize(
    ("look", "outcome", "wait_ms", "probes"),
    [
        (accepted(sign=BUSY, probes=7), WAIT, LOOK_MS, 0),
        (accepted(sign=BUSY, age_ms=10**9), WAIT, LOOK_MS, 0),
        # idle twice, 5 s apart, and no log: lost in the executor's memory before it began
        (accepted(), WAIT, IDLE_LOOK_MS, 1),
        (accepted(probes=1), AGAIN, 0, 0),
        (accepted(probes=1, delivery=LEAST), AGAIN, 0, 0),
        (accepted(probes=1, delivery=ONCE), LOST, 0, 0),
        (accepted(probes=1, attempt=FOREIGN_ATTEMPTS_MAX), WAIT, LOOK_MS, 2),
        (accepted(probes=1, durable=True), WAIT, LOOK_MS, 2),
        # it began and is over, or cannot be asked: the result may be on its way
        (accepted(sign=OVER), WAIT, IDLE_LOOK_MS, 1),
        (accepted(sign=OVER, probes=1), WAIT, LOOK_MS, 2),
        (accepted(sign=SILENT, probes=PROBES_LOST - 2), WAIT, LOOK_MS, PROBES_LOST - 1),
        (accepted(sign=OVER, probes=PROBES_LOST - 1), LOST, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1), LOST, 0, 0),
        (accepted(sign=MUTE, probes=PROBES_LOST - 1, durable=True), LOST, 0, 0),
        (accepted(sign=OVER, probes=PROBES_LOST - 1, delivery=LEAST), AGAIN, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, delivery=LEAST), AGAIN, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, delivery=LEAST, registered=False), ELSEWHERE, 0, 0),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, delivery=LEAST, attempt=ATTEMPTS_MAX), LOST, 0, 0),
        # while no console lives, that no result came says nothing
        (accepted(probes=1, reachable=False), WAIT, LOOK_MS, 1),
        (accepted(sign=SILENT, probes=PROBES_LOST - 1, reachable=False), WAIT, LOOK_MS, PROBES_LOST - 1),
    ],
)
def test_a_run_that_was_accepted(look: Look, outcome: Outcome, wait_ms: int, probes: int) -> None:
    step = judge_look(look)
    assert (step.outcome, step.wait_ms, step.probes) == (outcome, wait_ms, probes)
    assert step.reason


def test_a_result_is_called_lost_after_ninety_seconds_of_looks_and_not_before() -> None:
    waited_ms, look = 0, accepted(sign=OVER)
    while (step := judge_look(look)).outcome is WAIT:
        waited_ms += step.wait_ms
        look = replace(look, probes=step.probes)
    assert step.outcome is LOST
    assert 90_000 <= waited_ms <= 110_000
    assert "in 90 s" in step.reason


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("state", [FireState.UNKNOWN, FireState.ACCEPTED])
@pytest.mark.parametrize("sign", [NO_TRACE, OVER, MUTE, SILENT])
def test_no_run_is_watched_for_ever(delivery: Delivery, durable: bool, state: FireState, sign: Sign) -> None:
    """Whatever stays as it is: in the end it is sent no more, and there is an alarm."""
    look, age_ms = replace(UNKNOWN, state=state, delivery=delivery, durable=durable, sign=sign), 0
    for _ in range(200):
        step = judge_look(replace(look, age_ms=age_ms))
        if step.outcome is LOST:
            return
        if step.outcome in (AGAIN, ELSEWHERE):  # and its fate is unknown again
            look, age_ms = replace(look, state=FireState.UNKNOWN, attempt=look.attempt + 1, probes=0), 0
        elif step.outcome is STARTED:
            look, age_ms = replace(look, state=FireState.ACCEPTED, probes=0), 0
        else:
            assert step.wait_ms > 0
            look, age_ms = replace(look, probes=step.probes), age_ms + step.wait_ms
    pytest.fail("it never ends")


@pytest.mark.parametrize("sign", Sign)
@pytest.mark.parametrize("state", [FireState.UNKNOWN, FireState.ACCEPTED])
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("probes", range(PROBES_LOST + 1))
@pytest.mark.parametrize("age_ms", [0, FENCE_MS, UNKNOWN_MAX_MS, 10**9])
def test_at_most_once_is_never_sent_again(
    sign: Sign, state: FireState, durable: bool, probes: int, age_ms: int
) -> None:
    look = Look(state, ONCE, sign, durable=durable, registered=False, probes=probes, attempt=1, age_ms=age_ms)
    assert judge_look(look).outcome in (WAIT, STARTED, LOST)


OK = Reply(200)
ABSENT = "readLog fail, logFile not exists"


def log(text: str | None, **more: Any) -> Reply:
    return Reply(200, None, {"logContent": text, **more})


@pytest.mark.parametrize(
    ("who", "idle", "found", "sign"),
    [
        (
            "busy, whatever its log says",
            Reply(500, "job thread is running or has trigger queue."),
            log(ABSENT),
            BUSY,
        ),
        ("litert, busy", Reply.parse(402, b'{"code":402,"msg":"Busy"}'), None, BUSY),
        ("idle, and the log cannot be asked for", OK, None, MUTE),
        ("no answer to idleBeat", None, None, MUTE),
        ("Java, our own client", OK, log(ABSENT, toLineNum=0, isEnd=True), NO_TRACE),
        ("pyxxl", OK, log("No such logid logs.", isEnd=False), NO_TRACE),
        ("a string for a payload", OK, Reply(200, None, ABSENT), NO_TRACE),
        ("an npm client", OK, Reply(500, "ENOENT: no such file or directory"), NO_TRACE),
        ("hyperf", OK, Reply(500, "log not found"), NO_TRACE),
        ("litert", OK, Reply(500, 'HTTP status 404: {"code":404,"msg":"not found"}'), NO_TRACE),
        ("a path nobody serves", OK, Reply(500, "HTTP status 404: 404 page not found"), MUTE),
        ("another refusal", OK, Reply(500, "The access token is wrong."), MUTE),
        ("a log", OK, log("12:00:00 job execute start\n12:00:01 done"), OVER),
        (
            "a handler that writes what executors say",
            OK,
            log("12:00:00 the table does not exist\n" + ABSENT),
            OVER,
        ),
        ("an empty log", OK, log(""), MUTE),
        ("no log at all", OK, log(None), MUTE),
        ("no payload", OK, Reply(200), MUTE),
        ("idleBeat refused for the token", Reply(500, "The access token is wrong."), log(ABSENT), MUTE),
        ("idleBeat refused by a status", Reply(500, "HTTP status 401: unauthorized"), log(ABSENT), MUTE),
        ("no idleBeat", Reply(500, "HTTP status 404: no such path"), log(ABSENT), MUTE),
        ("idleBeat is an error page", Reply(500, "HTTP status 500: <html>"), log(ABSENT), MUTE),
        ("idleBeat says nothing", Reply.parse(200, b""), log(ABSENT), MUTE),
        ("idleBeat is no content", Reply.parse(204, b""), log(ABSENT), MUTE),
        ("idleBeat is a redirect", Reply.parse(302, b""), log(ABSENT), MUTE),
        (
            "idleBeat is plain HTTP to a TLS port",
            Reply.parse(400, b"<h1>400 Bad Request</h1>"),
            log(ABSENT),
            MUTE,
        ),
        ("idleBeat is a page", Reply.parse(200, b"<html>welcome</html>"), log(ABSENT), MUTE),
        ("idleBeat is JSON without a code", Reply.parse(200, b'{"status":"UP"}'), log(ABSENT), MUTE),
        (
            "idleBeat is not served",
            Reply(500, "invalid request, uri-mapping(/idleBeat) not found."),
            log(ABSENT),
            MUTE,
        ),
        (
            "idleBeat is another program's code",
            Reply.parse(200, b'{"code":1001,"msg":"please log in"}'),
            log(ABSENT),
            MUTE,
        ),
        (
            "idleBeat is another program's JSON error",
            Reply.parse(400, b'{"code":10001,"msg":"bad"}'),
            log(ABSENT),
            MUTE,
        ),
    ],
)
def test_what_probes_say_together(who: str, idle: Reply | None, found: Reply | None, sign: Sign) -> None:
    assert judge_probe(alive=True, idle=idle, log=found) is sign, who


def test_whoever_does_not_answer_is_silent() -> None:
    assert judge_probe(alive=False, idle=None, log=None) is SILENT


@pytest.mark.parametrize(
    ("sent_here", "text", "fate"),
    [
        (False, "busy", Fate.REFUSED),
        (True, "busy", Fate.UNKNOWN),
        (True, "HTTP status 402: {'msg':'Busy'}", Fate.UNKNOWN),
        (True, "no handler", Fate.REFUSED),
    ],
)
def test_a_busy_executor_may_be_busy_with_our_first_send(sent_here: bool, text: str, fate: Fate) -> None:
    assert judge_answer(Reply(500, text), sent_here=sent_here).fate is fate


@pytest.mark.parametrize(
    ("delivered", "remembered", "fate"),
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
    assert judge_silence(delivered=delivered, reason="refused", remembered=remembered).fate is fate
