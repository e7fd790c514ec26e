"""Evidence: meaning of the answers of all known executors for a run.

Source of the table: docs/reference/clients.md, sections A4 and A5.
"""

import json
from typing import Any

from app.domain.runs.evidence import Fate, judge_answer, judge_silence
from executor_client.wire.protocol import Reply
from tests.support.truth_table import truth_table

ACCEPTED, REFUSED, UNKNOWN = Fate.ACCEPTED, Fate.REFUSED, Fate.UNKNOWN
ENVOY = b"upstream connect error or disconnect/reset before headers. reset reason: "
RETRIED = ENVOY[:-14] + b" retried and the latest reset reason: "
DISCARDED = "block strategy effect：Discard Later"


def judged(**envelope: Any) -> bytes:
    return json.dumps(envelope, ensure_ascii=False).encode()


@truth_table(
    "client, status, body, fate",
    [
        ("Java 2.4.1 accepts", 200, b'{"code":200}', ACCEPTED),
        ("Java 3.4.1 accepts", 200, judged(code=200, msg="Success", data=None), ACCEPTED),
        ("pyxxl accepts", 200, judged(code=200, msg="Running"), ACCEPTED),
        ("hyperjiang accepts", 200, b'{"code":200,"msg":"OK"}\n', ACCEPTED),
        ("feixiaobo accepts", 200, judged(code=200, content="success"), ACCEPTED),
        ("feixiaobo is busy, and accepts", 200, judged(code=200, content="the server busy"), ACCEPTED),
        ("litert accepts what it does not know", 200, judged(code=200, msg=None), ACCEPTED),
        ("a code as text", 200, judged(code="200"), ACCEPTED),
        ("a code as fraction", 200, b'{"code":200.0}', ACCEPTED),
        ("Java 2.4.1 knows the run", 200, judged(code=500, msg="repeate trigger job, logId:7"), ACCEPTED),
        ("Java 3.4.1 knows the run", 200, judged(code=500, msg="repeat trigger job, logId:7"), ACCEPTED),
        ("Java has no such handler", 200, judged(code=500, msg="job handler [x] not found."), REFUSED),
        ("Java discards", 200, judged(code=500, msg=DISCARDED), REFUSED),
        ("the token is wrong", 200, judged(code=500, msg="The access token is wrong."), REFUSED),
        ("npm xxl-job is busy", 200, judged(code=500, msg="busy"), REFUSED),
        ("npm xxl-job fails in HTML", 500, b"<!DOCTYPE html><pre>Error</pre>", REFUSED),
        ("litert is busy", 402, judged(code=402, msg="busy"), REFUSED),
        ("litert, wrong token", 401, judged(code=401, msg="unauthorized"), REFUSED),
        (
            "xxl-job-executor-go refuses by an array",
            200,
            b'[{"logId":7,"handleCode":500,"handleMsg":"no"}]',
            REFUSED,
        ),
        ("hyperf has no token", 500, judged(code=500, msg="no token"), REFUSED),
        ("hyperf, wrong token", 401, b"", REFUSED),
        ("no such path", 404, b"not found", REFUSED),
        ("a redirect", 302, b"", REFUSED),
        ("another code", 200, judged(code=409, msg="full"), REFUSED),
        ("code null", 200, judged(code=None), REFUSED),
        ("no code", 200, judged(msg="hello"), REFUSED),
        ("code true", 200, judged(code=True), REFUSED),
        ("nothing", 200, b"", REFUSED),
        ("no JSON", 200, b"OK", REFUSED),
        ("a proxy that lost its executor", 502, b"bad gateway", UNKNOWN),
        ("a proxy that gave up waiting", 504, b"gateway timeout", UNKNOWN),
        ("Cloudflare got an answer it does not know", 520, b"error code: 520", UNKNOWN),
        ("Cloudflare gave up waiting", 524, b"error code: 524", UNKNOWN),
        ("Envoy lost its executor", 503, ENVOY + b"connection termination", UNKNOWN),
        ("Envoy could not connect", 503, ENVOY + b"remote connection failure", REFUSED),
        ("Envoy did not connect in time", 503, ENVOY + b"connection timeout", REFUSED),
        ("Envoy tried again", 503, RETRIED + b"remote connection failure", UNKNOWN),
        ("Envoy sends no more at once", 503, ENVOY + b"overflow", REFUSED),
        ("a proxy without executors", 503, b"no healthy upstream", REFUSED),
    ],
)
def test_the_answers_of_all_clients(client: str, status: int, body: bytes, fate: Fate) -> None:
    verdict = judge_answer(Reply.parse(status, body), may_have_been_sent_here=False)
    assert verdict.fate is fate, client
    assert (verdict.code == 200) is (fate is ACCEPTED), client


def test_a_refusal_keeps_the_text_of_the_executor() -> None:
    verdict = judge_answer(
        Reply.parse(200, judged(code=500, msg="job handler [x] not found.")), may_have_been_sent_here=False
    )
    assert verdict.text == "job handler [x] not found."
    array = judge_answer(
        Reply.parse(200, b'[{"handleMsg":"nobody is there"}]'), may_have_been_sent_here=False
    )
    assert "nobody is there" in array.text


@truth_table("sent_here, fate", [(False, REFUSED), (True, UNKNOWN)])
def test_a_discard_of_a_second_send_there_may_be_caused_by_the_first(sent_here: bool, fate: Fate) -> None:
    verdict = judge_answer(Reply(500, DISCARDED), may_have_been_sent_here=sent_here)
    assert verdict.fate is fate
    assert verdict.text.startswith(DISCARDED)


def test_a_second_send_that_is_refused_for_another_reason_is_refused() -> None:
    assert (
        judge_answer(Reply(500, "job handler [x] not found."), may_have_been_sent_here=True).fate is REFUSED
    )


def test_only_the_failure_text_of_a_repeat_proves_acceptance() -> None:
    assert (
        judge_answer(Reply(501, "repeate trigger job, logId:7"), may_have_been_sent_here=True).fate is REFUSED
    )
    assert judge_answer(Reply(500, "no repeate trigger job"), may_have_been_sent_here=True).fate is REFUSED


@truth_table("delivered, fate", [(False, REFUSED), (True, UNKNOWN)])
def test_silence_is_a_refusal_only_if_no_byte_was_written(delivered: bool, fate: Fate) -> None:
    verdict = judge_silence(is_delivered=delivered, reason="no connection in time")
    assert (verdict.fate, verdict.code, verdict.text) == (fate, 500, "no connection in time")
