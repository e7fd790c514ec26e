"""Wire protocol: output and lenient parsing."""

import json

import pytest

from executor_client.wire.callbacks import CallbackItem, callback_body, parse_callbacks
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.lenient_json import load_json
from executor_client.wire.protocol import (
    JobRequest,
    LogRequest,
    LogResult,
    RegistryRequest,
    Reply,
    RunRequest,
    is_repeated_trigger,
    to_handlers_header,
)
from tests.support.truth_table import truth_table

RUN = RunRequest(
    17, "report", "day=1", "SERIAL_EXECUTION", 30, 90213, 1714530000123, "BEAN", "", 1541254891000, 1, 3
)
RUN_KEYS = (
    "jobId executorHandler executorParams executorBlockStrategy executorTimeout logId logDateTime"
    " glueType glueSource glueUpdatetime broadcastIndex broadcastTotal"
)


def test_a_trigger_has_exactly_the_twelve_fields_in_order() -> None:
    wire = RUN.to_wire()
    assert list(wire) == RUN_KEYS.split()
    assert None not in wire.values()
    assert RunRequest.from_wire(wire) == RUN


def test_a_trigger_for_our_executors_has_its_logical_time_too() -> None:
    run = RUN._replace(logical_time=0, time_zone="Asia/Tokyo")
    wire = run.to_wire()
    assert list(wire) == [*RUN_KEYS.split(), "logicalTime", "timeZone"]
    assert RunRequest.from_wire(wire) == run
    assert run.without_logical_time() == RUN
    assert RUN.without_logical_time() is RUN


@truth_table(
    "changes, field, expected",
    [
        ({"executorParams": None}, "executor_params", ""),
        ({"glueSource": None}, "glue_source", ""),
        ({"logId": "90213"}, "log_id", 90213),
        ({"logId": 90213.0}, "log_id", 90213),
        ({"executorTimeout": None}, "executor_timeout", 0),
        ({"executorParams": 5}, "executor_params", "5"),
        ({"executorParams": True}, "executor_params", "true"),
        ({"somethingNew": {"a": 1}}, "job_id", 17),
    ],
)
def test_a_trigger_is_parsed_leniently(changes: dict[str, object], field: str, expected: object) -> None:
    assert getattr(RunRequest.from_wire({**RUN.to_wire(), **changes}), field) == expected


@truth_table(
    "changes",
    [
        {"jobId": "x"},
        {"jobId": True},
        {"jobId": 1.5},
        {"logId": 2**63},
        {"executorParams": {}},
        {"glueSource": []},
        {"jobId": [1]},
    ],
)
def test_a_trigger_with_a_wrong_type_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        RunRequest.from_wire({**RUN.to_wire(), **changes})


@truth_table("body", [b"", b"{", b"nul", b"[1,]", b'{"a":NaN}', b"[" * 100_000, b'{"a":1}x', b"9" * 5_000])
def test_invalid_json_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        load_json(body)


def test_missing_fields_have_defaults() -> None:
    assert RunRequest.from_wire({"jobId": 1}).executor_params == ""
    assert RegistryRequest.from_wire({"registryValue": 5}) == RegistryRequest("", "", "5")
    assert JobRequest.from_wire({}).job_id == 0


def test_a_result_is_sent_in_every_spelling() -> None:
    wire = json.loads(callback_body([CallbackItem(5, 1000, 200, "ok")]))
    assert wire == [
        {
            "logId": 5,
            "logDateTim": 1000,
            "logDateTime": 1000,
            "handleCode": 200,
            "handleMsg": "ok",
            "executeResult": {"code": 200, "msg": "ok"},
        }
    ]
    assert json.loads(callback_body([CallbackItem(5, 1000, 200, "ok")], as_object=True)) == {
        "callbackList": wire
    }


@truth_table(
    "element, expected",
    [
        ({"logId": 1, "logDateTim": 2, "handleCode": 200, "handleMsg": "x"}, CallbackItem(1, 2, 200, "x")),
        ({"logId": "1", "logDateTim": "2", "handleCode": "200"}, CallbackItem(1, 2, 200, None)),
        (
            {"logId": 1, "logDateTime": 2, "handleCode": 502.0, "handleMsg": None},
            CallbackItem(1, 2, 502, None),
        ),
        ({"logId": 1, "handleCode": 411, "handleMsg": 7}, CallbackItem(1, 0, 411, "7")),
        ({"logId": 1, "handleCode": 500, "handleMsg": {"a": "ä"}}, CallbackItem(1, 0, 500, '{"a": "ä"}')),
        ({"logId": 1, "executeResult": {"code": 200, "msg": "m"}}, CallbackItem(1, 0, 200, "m")),
        ({"logId": 1, "executeResult": {"code": 500, "content": "c"}}, CallbackItem(1, 0, 500, "c")),
        (
            {"logId": 1, "handleCode": 200, "executeResult": {"code": 500, "msg": "m"}},
            CallbackItem(1, 0, 200, "m"),
        ),
        ({"logId": 1, "handleCode": 200, "executeResult": None}, CallbackItem(1, 0, 200, None)),
        ({"logId": 1}, CallbackItem(1, 0, 0, None)),
        ({"handleCode": 200}, CallbackItem(0, 0, 200, None)),
        ({"logId": 1, "handleCode": 10**12, "handleMsg": "a\x00b\ud800"}, CallbackItem(1, 0, 10**12, "ab?")),
    ],
)
def test_a_result_is_parsed_in_every_spelling(element: dict[str, object], expected: CallbackItem) -> None:
    assert CallbackItem.from_wire(element) == expected


def test_a_bad_element_does_not_affect_the_others() -> None:
    batch = parse_callbacks(b'[null, {"logId": "x"}, 5, {"logId": 1, "handleCode": 200}]')
    assert [item.log_id for item in batch.items] == [1]
    assert len(batch.rejections) == 2
    assert "logId" in batch.rejections[0]


@truth_table(
    "body",
    [b'[{"logId":1}]', b'{"callbackList":[{"logId":1}]}', b'[{"logId":1},]', b'\xef\xbb\xbf[{"logId":1}]'],
)
def test_both_forms_of_a_batch_are_parsed(body: bytes) -> None:
    assert [item.log_id for item in parse_callbacks(body).items] == [1]


@truth_table("body", [b"", b"{}", b"5", b'"x"', b'{"callbackList":{}}', b"[] []"])
def test_an_invalid_batch_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        parse_callbacks(body)


@truth_table(
    "body, reason",
    [
        (b"{}", "an array of results is expected, not an object without callbackList"),
        (b'{"callbackList":null}', "an array of results is expected, not null"),
        (b'[{"logId":' + b"9" * 5_000 + b"}]", "a number has too many digits"),
        (b'[{"logId":NaN}]', "NaN is not JSON"),
    ],
)
def test_a_refusal_gives_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_callbacks(body)
    assert str(refused.value) == reason


@truth_table(
    "status, body, code, msg",
    [
        (200, b'{"code":200}', 200, None),
        (200, b'{"code":"200","msg":null}', 200, None),
        (200, b'{"code":200.0,"msg":"Success"}', 200, "Success"),
        (200, b'{"code":300,"msg":"x"}', 300, "x"),
        (200, b'{"code":500,"msg":{"a":1}}', 500, '{"a": 1}'),
        (200, b'{"code":200,"msg":"a\n\tb\x01"}', 200, "a\n\tb\x01"),
        (200, b"", 500, "the answer is empty"),
        (200, b"null", 500, "no usable answer: null"),
        (200, b"[]", 500, "no usable answer: []"),
        (200, b'{"msg":"x"}', 500, 'no usable answer: {"msg":"x"}'),
        (200, b'{"code":null}', 500, 'no usable answer: {"code":null}'),
        (200, b'{"code":true}', 500, 'no usable answer: {"code":true}'),
        (200, b'{"code":"x"}', 500, 'no usable answer: {"code":"x"}'),
        (200, b"<html>", 500, "no usable answer: <html>"),
        (201, b'{"code":200}', 500, 'HTTP status 201: {"code":200}'),
        (404, b"gone", 500, "HTTP status 404: gone"),
        (404, b" ", 500, "HTTP status 404"),
    ],
)
def test_every_response_becomes_a_reply(status: int, body: bytes, code: int, msg: str | None) -> None:
    reply = Reply.parse(status, body)
    assert (reply.code, reply.msg) == (code, msg)


@truth_table(
    "body, content",
    [
        (b'{"code":200,"content":1,"data":2}', 1),
        (b'{"code":200,"content":null,"data":2}', 2),
        (b'{"code":200,"data":2}', 2),
    ],
)
def test_the_payload_is_content_or_data(body: bytes, content: int) -> None:
    assert Reply.parse(200, body).content == content


def test_a_reply_keeps_xxl_jobs_key_order() -> None:
    assert json.dumps(Reply(500, "x").to_wire()).startswith('{"code": 500, "msg": "x", "content": null')
    assert list(Reply(200).to_wire(with_data=False)) == ["code", "msg", "content"]


@truth_table(
    "payload, expected",
    [
        (
            {"fromLineNum": 1, "toLineNum": 2, "logContent": "a\nb\n", "isEnd": False},
            LogResult(1, 2, "a\nb\n", False),
        ),
        (
            {"fromLineNum": 1, "toLineNum": "2", "logContent": "a\nb\n", "end": True},
            LogResult(1, 2, "a\nb\n", True),
        ),
        ({"logContent": "a\nb"}, LogResult(3, 4, "a\nb", False)),
        ("a\n", LogResult(3, 3, "a\n", False)),
        (None, LogResult(3, 2, "", False)),
    ],
)
def test_any_log_payload_is_parsed(payload: object, expected: LogResult) -> None:
    assert LogResult.from_wire(payload, from_line_num=3) == expected


def test_a_log_request_has_both_spellings_of_the_time() -> None:
    wire = LogRequest(5, 1000, 3).to_wire()
    assert wire["logDateTim"] == wire["logDateTime"] == 1000
    for spelling in ("logDateTim", "logDateTime"):
        assert LogRequest.from_wire({"logId": 5, spelling: 1000, "fromLineNum": 3}) == LogRequest(5, 1000, 3)


def test_capabilities_round_trip_through_their_header() -> None:
    known = Capabilities(durable_dedup=True, boot_id="abc")
    assert known.to_header() == "durable-dedup,boot=abc"
    assert Capabilities.from_header(known.to_header()) == known
    all_of_them = Capabilities(True, "abc", (), True, "5f0c", True, "0.1.0", True)
    header = "durable-dedup,boot=abc,run-state,last-lines,version=0.1.0,logical-time,schemas=5f0c"
    assert all_of_them.to_header() == header
    assert Capabilities.from_header(all_of_them.to_header()) == all_of_them
    assert Capabilities.from_header(None) == Capabilities()
    assert len(Capabilities.from_header("version=" + "9" * 99).version) == 32
    assert Capabilities.from_header("new, durable-dedup , boot=x") == Capabilities(
        durable_dedup=True, boot_id="x"
    )


@truth_table(
    "names, expected",
    [
        (["a", "结算", "x,y z%"], ["a", "结算", "x,y z%"]),
        ([], []),
        (["n" * 1_999, "m" * 2_000, "o"], ["n" * 1_999, "m" * 2_000]),
        (["n" * 4_001], []),
    ],
)
def test_handlers_round_trip_through_their_header(names: list[str], expected: list[str]) -> None:
    header = to_handlers_header(names)
    assert header.isascii()
    assert len(header) <= 4_000
    assert Capabilities.from_header("", header).handlers == tuple(expected)


def test_handlers_that_cannot_be_shown_are_left_out() -> None:
    assert Capabilities.from_header("", "a, ,%00,%FF,b%0Ac, d").handlers == ("a", "d")


@truth_table("text", ["repeate trigger job, logId:5", "repeat trigger job, logId:5"])
def test_a_repeated_trigger_is_recognised_in_both_spellings(text: str) -> None:
    assert is_repeated_trigger(Reply(500, text))
    assert not is_repeated_trigger(Reply(500, "other"))


@truth_table("header, boot_id", [("boot=5f0c", "5f0c"), ("boot=a\x00b", ""), ("boot=ä", ""), ("boot=", "")])
def test_a_boot_id_is_plain_text(header: str, boot_id: str) -> None:
    assert Capabilities.from_header(f"durable-dedup,{header}") == Capabilities(True, boot_id)
