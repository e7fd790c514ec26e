"""Gateway to executors: one attempt, checked, limited in size and time; one error for all failures."""

import gzip
import random
import socket
import tracemalloc
from collections.abc import Callable
from ipaddress import ip_network

import pytest

from app.errors import ExecutorUnreachable
from app.executors.calls import LOG_REPLY_MAX, REPLY_MAX, Peer
from app.executors.gateway import Gateway
from executor_client.wire.protocol import LogRequest, LogResult
from tests.support.executors import NETWORKS, TOKEN
from tests.support.fake_executor import Answer, FakeExecutor, Fault

GATEWAY = Gateway(NETWORKS)
LOG = LogRequest(log_id=90213, log_date_time=1714530030000, from_line_num=4)


@pytest.mark.parametrize(
    ("action", "body", "ask"),
    [
        ("beat", b"{}", lambda peer: GATEWAY.beat(peer)),
        ("idleBeat", b'{"jobId":17}', lambda peer: GATEWAY.idle_beat(peer, 17)),
        ("kill", b'{"jobId":17}', lambda peer: GATEWAY.kill(peer, 17)),
        (
            "log",
            b'{"logDateTim":1714530030000,"logDateTime":1714530030000,"logId":90213,"fromLineNum":4}',
            lambda peer: GATEWAY.read_log(peer, LOG),
        ),
    ],
)
def test_the_bytes_of_each_request(
    executor: FakeExecutor, peer: Peer, action: str, body: bytes, ask: Callable[[Peer], object]
) -> None:
    ask(peer)
    (request,) = executor.requests
    assert (request.target, request.body) == (f"/{action}", body)
    headers = request.headers
    assert headers["XXL-JOB-ACCESS-TOKEN"] == TOKEN
    assert headers["XXL-JOB-APPNAME"] == "demo-executor"
    assert headers["Content-Type"] == "application/json;charset=UTF-8"
    assert headers["Content-Length"] == str(len(body))
    assert not {"Cookie", "Authorization", "Transfer-Encoding"} & set(headers)


def test_an_answer_is_returned(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("kill", Answer.json(200, msg="job thread already killed."))
    executor.respond("idleBeat", Answer.json(500, msg="job thread is running or has trigger queue."))
    assert (GATEWAY.kill(peer, 17).code, GATEWAY.kill(peer, 17).msg) == (200, "job thread already killed.")
    assert GATEWAY.idle_beat(peer, 17).code == 500
    executor.respond("beat", Answer(b"not found", status=404))
    assert "HTTP status 404" in (GATEWAY.beat(peer).msg or "")


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        (
            {"content": {"fromLineNum": 4, "toLineNum": 5, "logContent": "a\nb\n", "isEnd": False}},
            LogResult(4, 5, "a\nb\n", False),
        ),
        (
            {"data": {"fromLineNum": 4, "toLineNum": 0, "logContent": "", "isEnd": True}},
            LogResult(4, 0, "", True),
        ),
        ({"content": {"fromLineNum": 4, "logContent": "a\r\nb"}}, LogResult(4, 5, "a\r\nb", False)),
        ({"content": "just text\n"}, LogResult(4, 4, "just text\n", False)),
        (
            {"content": {"fromLineNum": "?", "toLineNum": [], "logContent": "a\n"}},
            LogResult(4, 4, "a\n", False),
        ),
        ({}, LogResult(4, 3, "", False)),
    ],
)
def test_logs_of_all_clients(
    executor: FakeExecutor, peer: Peer, payload: dict[str, object], result: LogResult
) -> None:
    executor.respond("log", Answer.json(200, **payload))
    assert GATEWAY.read_log(peer, LOG) == result


@pytest.mark.parametrize("answer", [Answer.json(500, msg="no such log"), Answer(status=404), Answer(b"")])
def test_an_unavailable_log_is_an_error(executor: FakeExecutor, peer: Peer, answer: Answer) -> None:
    executor.respond("log", answer)
    with pytest.raises(ExecutorUnreachable) as caught:
        GATEWAY.read_log(peer, LOG)
    assert caught.value.address == peer.address


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_is_one_error_and_no_second_attempt(executor: FakeExecutor, peer: Peer, fault: Fault) -> None:
    executor.respond("beat", Answer(fault=fault), Answer())
    with pytest.raises(ExecutorUnreachable) as caught:
        GATEWAY.beat(peer, timeout_s=0.3)
    assert caught.value.reason
    assert len(executor.requests) == 1


def test_a_port_without_a_listener() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ExecutorUnreachable, match="refused"):
        GATEWAY.beat(Peer(f"http://127.0.0.1:{port}/", "demo", TOKEN))


@pytest.mark.parametrize("drip", ["head", "body"])
def test_an_answer_in_slow_pieces_times_out(executor: FakeExecutor, peer: Peer, drip: str) -> None:
    body = b'{"code":200' + b" " * (400 if drip == "body" else 0) + b"}"
    headers = (("X-Filler", "x" * (400 if drip == "head" else 0)),)
    executor.respond("beat", Answer(body, headers=headers, drip_s=0.02))
    with pytest.raises(ExecutorUnreachable, match="in time"):
        GATEWAY.beat(peer, timeout_s=0.4)
    assert len(executor.requests) == 1


def test_a_redirect_is_not_followed(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond(
        "*", Answer(status=302, headers=(("Location", executor.address + "elsewhere"),), body=b"")
    )
    assert "HTTP status 302" in (GATEWAY.beat(peer).msg or "")
    assert [request.target for request in executor.requests] == ["/beat"]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"", 302, (("Location", "http://["),)),
        Answer(verbatim=b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_where_a_redirect_leads_is_not_looked_at(executor: FakeExecutor, peer: Peer, answer: Answer) -> None:
    executor.respond("beat", answer)
    assert "HTTP status 302" in (GATEWAY.beat(peer).msg or "")


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Encoding: gzip\r\nContent-Length: 99999\r\n\r\n"
        + gzip.compress(random.Random(1).randbytes(60_000))[:50_000],
    ],
    ids=["chunk of negative size", "cut in the middle"],
)
def test_a_malformed_answer_is_the_same_error(executor: FakeExecutor, peer: Peer, raw: bytes) -> None:
    executor.respond("beat", Answer(verbatim=raw, close_after=True))
    with pytest.raises(ExecutorUnreachable):
        GATEWAY.beat(peer)


def test_the_body_of_a_redirect_is_limited_too(executor: FakeExecutor, peer: Peer) -> None:
    headers = (("Location", "/elsewhere"), ("Content-Encoding", "gzip"))
    body = gzip.compress(b"x" * 50_000_000)
    executor.respond("beat", Answer(body, 302, headers))
    tracemalloc.start()
    try:
        with pytest.raises(ExecutorUnreachable, match="longer than"):
            GATEWAY.beat(peer)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_proxies_and_passwords_of_the_environment_are_ignored(
    executor: FakeExecutor, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert GATEWAY.beat(peer).code == 200


@pytest.mark.parametrize(("action", "limit"), [("beat", REPLY_MAX), ("log", LOG_REPLY_MAX)])
def test_the_size_of_an_answer_is_limited(
    executor: FakeExecutor, peer: Peer, action: str, limit: int
) -> None:
    def ask() -> object:
        return GATEWAY.beat(peer) if action == "beat" else GATEWAY.read_log(peer, LOG)

    frame = b'{"code":200,"msg":""}'
    executor.respond(action, Answer(frame.replace(b'""', b'"' + b"x" * (limit - len(frame)) + b'"')))
    ask()
    executor.respond(action, Answer(b"x" * (limit + 50_000)))
    with pytest.raises(ExecutorUnreachable, match=f"longer than {limit} bytes"):
        ask()


@pytest.mark.parametrize("name", ["content", "data"])
def test_of_a_log_beyond_the_limit_the_first_lines_are_read(
    executor: FakeExecutor, peer: Peer, name: str
) -> None:
    """Java executors send all lines at once: the next call continues behind those that were read."""
    line = 'a "quoted" \\n part, \\ and 中文\r\n'
    lines = line * (LOG_REPLY_MAX // len(line))
    payload = {"fromLineNum": 4, "toLineNum": 99_999, "logContent": lines, "isEnd": False}
    executor.respond("log", Answer.json(200, **{name: payload}))
    read = GATEWAY.read_log(peer, LOG)
    count, rest = divmod(len(read.log_content), len(line))
    assert (rest, read.log_content) == (0, line * count)
    assert 1_000 < count < lines.count("\n")
    assert (read.from_line_num, read.to_line_num, read.is_end) == (4, 3 + count, False)


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json(200, content={"logContent": "x" * LOG_REPLY_MAX}),
        Answer.json(200, content={"logContent": "a\n", "more": "\n" * LOG_REPLY_MAX}),
        Answer.json(200, content={"logContent": "a\n" * LOG_REPLY_MAX}).but(status=500),
    ],
)
def test_an_answer_without_whole_lines_is_too_long(
    executor: FakeExecutor, peer: Peer, answer: Answer
) -> None:
    executor.respond("log", answer)
    with pytest.raises(ExecutorUnreachable, match="longer than"):
        GATEWAY.read_log(peer, LOG)


def test_a_compressed_answer_is_limited_by_its_unpacked_size(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond(
        "beat", Answer(gzip.compress(b"x" * 50_000_000), headers=(("Content-Encoding", "gzip"),))
    )
    with pytest.raises(ExecutorUnreachable, match="longer than"):
        GATEWAY.beat(peer)


@pytest.mark.parametrize(
    "address", ["http://8.8.8.8:9999/", "http://169.254.169.254/", "http://127.0.0.1:22/", "nonsense"]
)
def test_a_forbidden_address_is_not_called(address: str) -> None:
    with pytest.raises(ExecutorUnreachable, match="refused"):
        GATEWAY.beat(Peer(address, "demo", TOKEN))


def test_a_name_that_resolves_outside_gets_no_byte(executor: FakeExecutor) -> None:
    """The address is checked after connecting, so that it cannot change between check and call."""
    peer = Peer(executor.address.replace("127.0.0.1", "localhost"), "demo", TOKEN)
    with pytest.raises(ExecutorUnreachable, match="outside the networks"):
        Gateway((ip_network("10.0.0.0/8"),)).beat(peer)
    assert executor.requests == []
    assert GATEWAY.beat(peer).code == 200
