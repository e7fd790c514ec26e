"""Both clients apply the same rules to addresses and headers and give the same reasons for a failed call."""

import socket
from collections.abc import Callable
from ipaddress import ip_network

import pytest

from app.errors import ExecutorUnreachable
from app.executors.calls import Delivery, Peer, reason_of
from app.executors.dispatch_client import DispatchClient
from app.executors.gateway import Gateway
from app.settings.config import Network
from tests.support.executors import NETWORKS, TOKEN, in_loop, with_client
from tests.support.fake_executor import Answer, FakeExecutor, Fault

Ask = Callable[[Peer, tuple[Network, ...]], str]


def by_gateway(peer: Peer, networks: tuple[Network, ...]) -> str:
    """Return why a blocking call failed."""
    with pytest.raises(ExecutorUnreachable) as caught:
        Gateway(networks).beat(peer, timeout_s=0.3)
    return caught.value.reason


def by_dispatch(peer: Peer, networks: tuple[Network, ...]) -> str:
    """Return why an asynchronous call failed."""

    async def call() -> str:
        client = DispatchClient(networks)
        outcome = await client.call(peer, "beat", b"{}", timeout_s=0.3)
        await client.close()
        assert outcome.delivery is not Delivery.ANSWERED
        return outcome.reason

    return in_loop(call())


@pytest.fixture(params=[by_gateway, by_dispatch], ids=["gateway", "dispatch"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Return each client's call of ``/beat``."""
    return request.param


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://8.8.8.8:9999/", "outside the networks of XXL_JOB_EXECUTOR_NETWORKS"),
        ("http://127.0.0.1:22/", "port 22 is not allowed"),
        ("nonsense", "must start with http://"),
        ("http://127.0.0.1:9999/?a=b", "must not contain"),
    ],
)
def test_an_address_is_refused_for_the_same_reason(ask: Ask, address: str, reason: str) -> None:
    assert reason in ask(Peer(address, "demo", TOKEN), NETWORKS)


def test_a_header_is_refused_for_the_same_reason(ask: Ask, executor: FakeExecutor) -> None:
    reason = ask(Peer(executor.address, "demo", "a\r\nX-Other: 1"), NETWORKS)
    assert reason == "it contains characters that are not allowed in a header"
    assert executor.requests == []


def test_an_app_name_in_any_script_is_sent(ask: Ask, executor: FakeExecutor) -> None:
    """XXL-JOB takes such names for groups, and its executors ignore the header."""
    executor.respond("beat", Answer(fault=Fault.CLOSE))
    ask(Peer(executor.address, "订单-executor", TOKEN), NETWORKS)
    assert executor.requests[0].headers["XXL-JOB-APPNAME"] == "订单-executor"


def test_a_port_without_a_listener(ask: Ask) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    reason = ask(Peer(f"http://127.0.0.1:{port}/", "demo", TOKEN), NETWORKS)
    assert reason == "connection refused: nothing listens on this port"


def test_a_name_outside_the_networks(ask: Ask, executor: FakeExecutor) -> None:
    peer = Peer(executor.address.replace("127.0.0.1", "localhost"), "demo", TOKEN)
    reason = ask(peer, (ip_network("10.0.0.0/8"),))
    assert reason.startswith("the host name resolves to ")
    assert reason.endswith(", outside the networks of XXL_JOB_EXECUTOR_NETWORKS")
    assert executor.requests == []


def test_an_executor_that_does_not_answer(ask: Ask, executor: FakeExecutor, peer: Peer) -> None:
    executor.respond("beat", Answer(fault=Fault.SILENCE))
    assert ask(peer, NETWORKS) == "no answer in time"


WRONG_TOKEN = Answer.json(code=500, msg="The access token is wrong.")
OLD_TOKEN = "the-token-before-this-one"


def reply_to_gateway(peer: Peer) -> str | None:
    return Gateway(NETWORKS).beat(peer, timeout_s=5.0).msg


def reply_to_dispatch(peer: Peer) -> str | None:
    outcome = with_client(lambda client: client.call(peer, "beat", b"{}", timeout_s=5.0))
    assert outcome.reply is not None
    return outcome.reply.msg


@pytest.mark.parametrize("reply_to", [reply_to_gateway, reply_to_dispatch])
@pytest.mark.parametrize(
    ("first", "former", "sent"),
    [
        (WRONG_TOKEN, OLD_TOKEN, [TOKEN, OLD_TOKEN]),
        (
            Answer.json(code=500, msg="invalid request, accessToken or appname invalid."),
            OLD_TOKEN,
            [TOKEN, OLD_TOKEN],
        ),
        (WRONG_TOKEN, "", [TOKEN]),
        (Answer.json(msg="The access token is wrong."), OLD_TOKEN, [TOKEN]),
        (Answer.json(code=500, msg="job thread is running"), OLD_TOKEN, [TOKEN]),
        (Answer.json(code=500), OLD_TOKEN, [TOKEN]),
    ],
)
def test_only_a_refused_token_is_replaced_by_the_one_before(
    reply_to: Callable[[Peer], str | None],
    executor: FakeExecutor,
    first: Answer,
    former: str,
    sent: list[str],
) -> None:
    executor.respond("beat", first, Answer.json(msg="second"))
    reply = reply_to(Peer(executor.address, "demo", TOKEN, former))
    assert [request.headers["XXL-JOB-ACCESS-TOKEN"] for request in executor.requests] == sent
    assert (reply == "second") is (len(sent) == 2)


@pytest.mark.parametrize("reply_to", [reply_to_gateway, reply_to_dispatch])
def test_the_token_before_is_tried_once(
    reply_to: Callable[[Peer], str | None], executor: FakeExecutor
) -> None:
    executor.respond("beat", WRONG_TOKEN)
    assert reply_to(Peer(executor.address, "demo", TOKEN, OLD_TOKEN)) == "The access token is wrong."
    assert len(executor.requests) == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            ConnectionRefusedError(111, "Connection refused"),
            "connection refused: nothing listens on this port",
        ),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "the host name orders does not resolve"),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), f"[Errno {socket.EAI_AGAIN}] try again"),
        (OSError("x" * 1_000), "x" * 300),
        (OSError(), "OSError"),
    ],
)
def test_reasons(error: Exception, reason: str) -> None:
    assert reason_of(error, "orders") == reason
