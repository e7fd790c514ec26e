"""Dispatch client: exact bytes, one write, one attempt, and the outcome of a call without an answer."""

import asyncio
import socket
import time
from ipaddress import ip_network
from typing import Any

import pytest

from app.executors.calls import REPLY_MAX, CallOutcome, Delivery, Peer
from app.executors.connection import Connection
from app.executors.dispatch_client import KNOWN_ANSWER_MAX, DispatchClient, _known_boot_id
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import RunRequest
from tests.support.executors import NETWORKS, TOKEN, with_client
from tests.support.fake_executor import Answer, FakeExecutor, Fault

RUN = RunRequest(
    17,
    "reportHandler",
    "day=2024-05-01 行",
    "SERIAL_EXECUTION",
    0,
    90213,
    1714530030000,
    "BEAN",
    "",
    1541254891000,
    0,
    1,
)
CONTENT = dump_json(RUN.to_wire())
BODY = (
    '{"jobId":17,"executorHandler":"reportHandler","executorParams":"day=2024-05-01 行",'
    '"executorBlockStrategy":"SERIAL_EXECUTION",'
    '"executorTimeout":0,"logId":90213,"logDateTime":1714530030000,"glueType":"BEAN","glueSource":"",'
    '"glueUpdatetime":1541254891000,'
    '"broadcastIndex":0,"broadcastTotal":1}'
).encode()


def call(
    peer: Peer, *, timeout_s: float = 2.0, times: int = 1, networks: tuple[object, ...] = NETWORKS
) -> list[CallOutcome]:
    """Send a run several times, one after the other."""

    async def work(client: DispatchClient) -> list[CallOutcome]:
        return [await client.call(peer, "run", CONTENT, timeout_s=timeout_s) for _ in range(times)]

    return with_client(work, networks)


def test_the_bytes_of_a_run_request(executor: FakeExecutor, peer: Peer) -> None:
    (outcome,) = call(peer)
    (request,) = executor.requests
    assert request.body == BODY
    assert request.head.split(b"\r\n")[0] == b"POST /run HTTP/1.1"
    headers = request.headers
    assert headers["XXL-JOB-ACCESS-TOKEN"] == TOKEN
    assert headers["XXL-JOB-APPNAME"] == "demo-executor"
    assert headers["Content-Type"] == "application/json;charset=UTF-8"
    assert headers["Content-Length"] == str(len(BODY))
    assert headers["Host"] == executor.address.removeprefix("http://").rstrip("/")
    assert "Transfer-Encoding" not in headers
    assert "Cookie" not in headers
    assert (outcome.delivery, outcome.reason) == (Delivery.ANSWERED, "")
    assert outcome.reply is not None
    assert outcome.reply.code == 200


@pytest.mark.parametrize("param_bytes", [0, 1_000, 30_000])
def test_head_and_body_are_sent_in_one_write(executor: FakeExecutor, peer: Peer, param_bytes: int) -> None:
    """feixiaobo's client does not wait for a second segment."""
    content = dump_json({**RUN.to_wire(), "executorParams": "x" * param_bytes})
    with_client(lambda client: client.call(peer, "run", content, timeout_s=2))
    (request,) = executor.requests
    assert request.reads == (len(request.head) + 4 + len(request.body),)


def test_an_address_with_a_path(executor: FakeExecutor) -> None:
    call(Peer(executor.address + "job", "demo", TOKEN))
    assert executor.requests[0].target == "/job/run"


def test_a_connection_is_reused(executor: FakeExecutor, peer: Peer) -> None:
    call(peer, times=3)
    assert [request.connection for request in executor.requests] == [1, 1, 1]


def test_a_durable_executor_sends_its_boot_id(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("run", Answer(headers=(("X-Exec-Capabilities", "durable-dedup,boot=5f0c"),)))
    assert call(peer)[0].boot_id == "5f0c"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.RESET_BEFORE_BODY, ""),
        (Fault.RESET_AFTER_BODY, ""),
        (Fault.CLOSE, "the connection was closed before an answer arrived"),
        (Fault.CUT, ""),
        (Fault.SILENCE, "no answer in time"),
    ],
)
def test_a_request_that_may_have_arrived_is_never_repeated(
    executor: FakeExecutor, peer: Peer, fault: Fault, reason: str
) -> None:
    executor.respond("run", Answer(fault=fault), Answer())
    (outcome,) = call(peer, timeout_s=0.3)
    assert (outcome.delivery, outcome.reply) == (Delivery.PERHAPS, None)
    assert reason in outcome.reason
    assert len(executor.requests) == 1


def test_a_request_on_a_connection_closed_meanwhile_is_not_repeated(
    executor: FakeExecutor, peer: Peer
) -> None:
    executor.respond("run", Answer(), Answer(fault=Fault.RESET_AFTER_BODY), Answer())
    outcomes = call(peer, times=3)
    assert [outcome.delivery for outcome in outcomes] == [
        Delivery.ANSWERED,
        Delivery.PERHAPS,
        Delivery.ANSWERED,
    ]
    assert len(executor.requests) == 3


def test_a_server_that_drops_idle_connections_costs_nothing(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("run", Answer(close_after=True))

    async def work(client: DispatchClient) -> list[CallOutcome]:
        outcomes = []
        for _ in range(3):
            outcomes.append(await client.call(peer, "run", CONTENT, timeout_s=2))
            await asyncio.sleep(0.05)  # the end of the connection has arrived
        return outcomes

    assert [outcome.delivery for outcome in with_client(work)] == [Delivery.ANSWERED] * 3
    assert executor.connections == 3


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_refused_connection_has_delivered_nothing() -> None:
    (outcome,) = call(Peer(f"http://127.0.0.1:{closed_port()}/", "demo", TOKEN))
    assert (outcome.delivery, outcome.reply) == (Delivery.NO, None)
    assert "refused" in outcome.reason.lower() or "connect" in outcome.reason.lower()


def test_a_connection_that_times_out_has_delivered_nothing() -> None:
    with socket.socket() as full:  # a full queue answers no SYN
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for connection in waiting:
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
        (outcome,) = call(Peer(f"http://127.0.0.1:{port}/", "demo", TOKEN), timeout_s=0.3)
        for connection in waiting:
            connection.close()
    assert (outcome.delivery, outcome.reason) == (Delivery.NO, "no connection in time")
    assert outcome.took_ms >= 290


@pytest.mark.parametrize(
    "address",
    ["http://8.8.8.8:9999/", "http://169.254.169.254/", "http://127.0.0.1:22/", "ftp://x", "nonsense", ""],
)
def test_a_forbidden_address_is_not_called(address: str) -> None:
    (outcome,) = call(Peer(address, "demo", TOKEN))
    assert (outcome.delivery, outcome.reply) == (Delivery.NO, None)
    assert "refused" in outcome.reason


def test_a_name_that_resolves_outside_is_not_called(executor: FakeExecutor) -> None:
    address = executor.address.replace("127.0.0.1", "localhost")
    (outcome,) = call(Peer(address, "demo", TOKEN), networks=(ip_network("10.0.0.0/8"),))
    assert outcome.delivery is Delivery.NO
    assert "outside the networks" in outcome.reason
    assert executor.connections == 0
    assert call(Peer(address, "demo", TOKEN))[0].delivery is Delivery.ANSWERED


def test_an_unknown_name(executor: FakeExecutor) -> None:
    (outcome,) = call(Peer("http://no-such-host.invalid:9999/", "demo", TOKEN))
    assert outcome.delivery is Delivery.NO


def test_a_redirect_is_an_answer_and_not_followed(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond(
        "run", Answer(status=307, headers=(("Location", executor.address + "elsewhere"),), body=b"")
    )
    (outcome,) = call(peer)
    assert outcome.reply is not None
    assert outcome.reply.code == 500
    assert "HTTP status 307" in (outcome.reply.msg or "")
    assert [request.target for request in executor.requests] == ["/run"]


def test_proxies_of_the_environment_are_ignored(
    executor: FakeExecutor, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert call(peer)[0].delivery is Delivery.ANSWERED


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(b'[{"logId":1,"handleMsg":"go"}]'), 500),
        (Answer(b"<html>hello</html>"), 500),
        (Answer(b""), 500),
        (Answer(b'{"code":"200"}', headers=()), 200),
        (Answer(b'{"code":200}\n', headers=(("Content-Type", "text/plain"),)), 200),
        (Answer(b'{"code":200,"msg":"a\nb"}'), 200),
        (Answer(b'{"code":200}', status=402), 500),
        (Answer(b'\xff\xfe{"code":200}'), 500),
        (Answer(b'{"code":200,"msg":"' + b"x" * (REPLY_MAX - 21) + b'"}'), 200),
        (Answer(b'{"code":200,"msg":"' + b"x" * 3_000_000 + b'"}'), 500),
    ],
    ids=["array", "html", "empty", "no type", "plain", "line end", "402", "no text", "largest", "too large"],
)
def test_invalid_and_unusual_answers(executor: FakeExecutor, peer: Peer, answer: Answer, code: int) -> None:
    executor.respond("run", answer)
    (outcome,) = call(peer)
    assert outcome.reply is not None
    assert outcome.reply.code == code
    assert outcome.delivery is Delivery.ANSWERED


def test_an_answer_in_slow_pieces_times_out(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("run", Answer(b'{"code":200' + b" " * 500 + b"}", drip_s=0.05))
    (outcome,) = call(peer, timeout_s=0.3)
    assert (outcome.delivery, outcome.reason) == (Delivery.PERHAPS, "no answer in time")
    assert outcome.took_ms < 2_500


def test_compressed_answers_are_not_unpacked(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("run", Answer(b"\x1f\x8b\x08\x00", headers=(("Content-Encoding", "gzip"),)))
    (outcome,) = call(peer)
    assert outcome.reply is not None
    assert outcome.reply.code == 500


def test_a_hanging_executor_does_not_delay_others(executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("run", Answer(fault=Fault.SILENCE))
    with FakeExecutor() as quick:
        quick_peer = Peer(quick.address, "demo", TOKEN)

        async def work(client: DispatchClient) -> tuple[CallOutcome, list[CallOutcome]]:
            slow = asyncio.create_task(client.call(peer, "run", b"{}", timeout_s=1))
            answers = await asyncio.gather(
                *(client.call(quick_peer, "run", b"{}", timeout_s=1) for _ in range(50))
            )
            assert not slow.done()
            return await slow, answers

        hung, answers = with_client(work)
    assert hung.delivery is Delivery.PERHAPS
    assert {outcome.delivery for outcome in answers} == {Delivery.ANSWERED}


def test_a_long_header_of_an_executor_is_read_but_not_kept(executor: FakeExecutor, peer: Peer) -> None:
    header = "boot=5f0c," + "x" * KNOWN_ANSWER_MAX
    executor.respond("run", Answer(headers=(("X-Exec-Capabilities", header),)))
    kept = _known_boot_id.cache_info().currsize
    assert call(peer)[0].boot_id == "5f0c"
    assert _known_boot_id.cache_info().currsize == kept


def test_nothing_is_sent_on_a_connection_made_before_a_suspension(
    executor: FakeExecutor, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a kept one, whose end may be lost, nor for a run that another node may have by now."""
    suspended_s, real = [0.0], time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + suspended_s[0])
    connect = DispatchClient._connect

    async def connect_and_suspend(client: DispatchClient, *arguments: Any) -> Connection:
        connection = await connect(client, *arguments)
        suspended_s[0] += 3_600
        return connection

    async def work(client: DispatchClient) -> list[Delivery]:
        first = await client.call(peer, "run", b"{}", timeout_s=1.0)
        suspended_s[0] += 3_600
        second = await client.call(peer, "run", b"{}", timeout_s=1.0)
        assert executor.connections == 2
        client._idle.clear()
        monkeypatch.setattr(DispatchClient, "_connect", connect_and_suspend)
        third = await client.call(peer, "run", b"{}", timeout_s=1.0)
        return [outcome.delivery for outcome in (first, second, third)]

    assert with_client(work) == [Delivery.ANSWERED, Delivery.ANSWERED, Delivery.NO]
    assert len(executor.requests_for("run")) == 2
