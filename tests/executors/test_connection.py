"""One connection: valid and invalid answers, and when it is reused."""

import asyncio
import errno
import os
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from app.executors import dispatch_client
from app.executors.calls import CallOutcome, Delivery, Peer
from app.executors.connection import HEAD_MAX, Connection
from app.executors.dispatch_client import DispatchClient
from tests.support.executors import NETWORKS, TOKEN, in_loop

Value = TypeVar("Value")
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{"code":200}\r\n'
YES = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"code":200}'


class Server:
    """Server in the loop of the test: answers with the given raw texts in turn, the last one repeatedly."""

    def __init__(self, *answers: bytes, close: bool = False, unasked: bytes = b"") -> None:
        self.answers, self.close, self.unasked = list(answers), close, unasked
        self.requests, self.connections, self.ended = 0, 0, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(
                    int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                )
                self.requests += 1
                writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
                await writer.drain()
                if self.close:
                    break
                if self.unasked:
                    await asyncio.sleep(0.05)
                    writer.write(self.unasked)
        except (asyncio.IncompleteReadError, OSError):
            pass
        self.ended += 1
        writer.close()


@asynccontextmanager
async def running(
    server: Server, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[DispatchClient, int]]:
    """Start a server and a client; both have closed all connections in the end."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    client = DispatchClient(NETWORKS)
    try:
        yield client, listening.sockets[0].getsockname()[1]
    finally:
        await client.close()
        listening.close()
        until = time.monotonic() + 5
        while server.ended < server.connections and time.monotonic() < until:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)


def against(
    server: Server, work: Callable[[Callable[[], Awaitable[CallOutcome]]], Awaitable[Value]]
) -> Value:
    """Call a function with a server's client."""

    async def run() -> Value:
        async with running(server) as (client, port):
            return await work(
                partial(
                    client.call, Peer(f"http://127.0.0.1:{port}/", "demo", TOKEN), "run", b"{}", timeout_s=0.5
                )
            )

    return in_loop(run())


async def twice(call: Callable[[], Awaitable[CallOutcome]]) -> tuple[CallOutcome, CallOutcome]:
    first = await call()
    await asyncio.sleep(0.1)  # unrequested bytes and the end of the connection have arrived
    return first, await call()


@pytest.mark.parametrize(
    ("raw", "connections"),
    [
        (YES, 1),
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"code\r\n6\r\n":200}\r\n0\r\n\r\n', 1),
        (b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n" + YES, 1),
        (CHUNKED + b"0\r\nX-Exec-Capabilities: boot=late\r\n\r\n", 1),
        (b'HTTP/1.1 200\r\ncontent-length:12\r\n\r\n{"code":200}', 1),
        (b'HTTP/1.1 200 OK\nContent-Length: 12\n\n{"code":200}', 1),
        (b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{"code":200}', 2),
        (b'HTTP/1.0 200 OK\r\nContent-Length: 12\r\n\r\n{"code":200}', 2),
        (YES + b"and more", 2),
        (YES + YES, 2),
    ],
    ids=[
        "plain",
        "chunked",
        "continue first",
        "trailer",
        "no reason",
        "bare line feeds",
        "connection: close",
        "1.0",
        "trailing bytes",
        "two answers",
    ],
)
def test_an_answer_and_whether_its_connection_is_reused(raw: bytes, connections: int) -> None:
    server = Server(raw)
    for outcome in against(server, twice):
        assert (outcome.delivery, outcome.reason) == (Delivery.ANSWERED, "")
        assert outcome.reply is not None
        assert (outcome.reply.code, outcome.boot_id) == (200, "")
    assert (server.requests, server.connections) == (2, connections)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n"]
)
def test_a_body_may_end_with_its_connection(head: bytes) -> None:
    server = Server(head + b'{"code":200}', close=True)
    for outcome in against(server, twice):
        assert outcome.reply is not None
        assert outcome.reply.code == 200


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 OK\r\n\r\n", "the answer is not HTTP"),
        (CHUNKED + b"0\r\nX: " + b"y" * (8 * HEAD_MAX), "the head of the answer is longer than"),
        (CHUNKED + b"1;" + b"y" * (8 * HEAD_MAX), "the head of the answer is longer than"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: twelve\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * (HEAD_MAX // 6 + 1), "the head of the answer is longer than"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"code":200}', "no answer in time"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "no answer in time"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "no answer in time"),
    ],
    ids=[
        "ssh",
        "no status",
        "endless trailer",
        "endless chunk size",
        "no length",
        "upgrade",
        "endless head",
        "short body",
        "half a head",
        "only continue",
    ],
)
def test_an_invalid_answer_is_an_error(raw: bytes, reason: str) -> None:
    server = Server(raw, YES)
    first, second = against(server, twice)
    assert (first.delivery, first.reply) == (Delivery.PERHAPS, None)
    assert reason in first.reason
    assert second.delivery is Delivery.ANSWERED, "the next call is not affected"
    assert (server.requests, server.connections) == (2, 2)


@pytest.mark.parametrize(
    "cut",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_a_connection_that_closes_within_an_answer(cut: bytes) -> None:
    (outcome, _) = against(Server(cut, close=True), twice)
    assert (outcome.delivery, outcome.reason) == (
        Delivery.PERHAPS,
        "the connection was closed before an answer arrived",
    )


def test_an_unrequested_answer_is_not_used_for_the_next_call() -> None:
    server = Server(YES, unasked=b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"code":500}')
    for outcome in against(server, twice):
        assert outcome.reply is not None
        assert outcome.reply.code == 200
    assert server.connections == 2


def test_a_cancelled_call_leaves_no_connection_open() -> None:
    server = Server(b"", YES)

    async def work(call: Callable[[], Awaitable[CallOutcome]]) -> CallOutcome:
        given_up = asyncio.ensure_future(call())
        await asyncio.sleep(0.1)
        given_up.cancel()
        await asyncio.sleep(0.05)
        return await call()

    assert against(server, work).delivery is Delivery.ANSWERED
    assert (server.connections, server.ended) == (2, 1 + 1)


def test_concurrent_calls_have_a_connection_each_and_idle_ones_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch_client, "KEEP_ALIVE_S", 0.2)
    server = Server(YES)

    async def work(call: Callable[[], Awaitable[CallOutcome]]) -> tuple[int, int]:
        await asyncio.gather(*[call() for _ in range(20)])
        await asyncio.gather(*[call() for _ in range(20)])
        opened, until = server.connections, time.monotonic() + 5
        while server.ended < opened and time.monotonic() < until:
            await asyncio.sleep(0.05)
        return opened, server.ended

    assert against(server, work) == (20, 20)


def test_an_old_connection_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_client, "KEEP_ALIVE_S", 0.05)
    server = Server(YES)
    against(server, twice)
    assert server.connections == 2


@pytest.mark.parametrize(
    ("token", "app_name"), [("a\r\nX-Other: 1", "demo"), ("t", "de\nmo"), ("t\0", "demo")]
)
def test_a_header_value_cannot_inject_another_header(token: str, app_name: str) -> None:
    server = Server(YES)

    async def run() -> CallOutcome:
        async with running(server) as (client, port):
            return await client.call(
                Peer(f"http://127.0.0.1:{port}/", app_name, token), "run", b"{}", timeout_s=0.5
            )

    outcome = in_loop(run())
    assert outcome.delivery is Delivery.NO
    assert "not allowed in a header" in outcome.reason
    assert server.connections == 0


def test_a_process_out_of_files_closes_its_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    server, full = Server(YES), [False, True, False]

    async def run() -> tuple[CallOutcome, CallOutcome]:
        async with running(server) as (client, port):
            opened = client._open_connection

            async def open_unless_full(*arguments: Any) -> Connection:
                if full.pop(0):
                    raise OSError(errno.EMFILE, "Too many open files")
                return await opened(*arguments)

            monkeypatch.setattr(client, "_open_connection", open_unless_full)
            first = Peer(f"http://127.0.0.1:{port}/", "demo", TOKEN)
            second = Peer(f"http://127.0.0.2:{port}/", "demo", TOKEN)
            return await client.call(first, "run", b"{}", timeout_s=0.5), await client.call(
                second, "run", b"{}", timeout_s=0.5
            )

    first, second = in_loop(run())
    assert first.delivery is Delivery.ANSWERED
    assert "refused" in second.reason, "the second attempt was made: nothing listens there"
    assert (full, server.ended) == ([], 1)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_what_this_host_lacks_says_nothing_of_an_executor(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def lack(*_: object) -> Connection:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(DispatchClient, "_open_connection", lack)
    outcomes = against(Server(YES), twice)
    assert {(outcome.delivery, outcome.reply) for outcome in outcomes} == {(Delivery.UNTRIED, None)}
    assert len(caplog.messages) == 1, "a log line a minute"
    assert os.strerror(number) in caplog.text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "made.pem", folder / "key.pem"
    request = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=executor"
        " -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [*request.split(), "-keyout", str(key), "-out", str(made)], check=True, capture_output=True
    )
    return made, key


@pytest.mark.parametrize("trusted", [True, False])
def test_an_executor_with_tls_is_called_only_with_a_trusted_certificate(
    certificate: tuple[Path, Path], trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, key = certificate
    if trusted:
        monkeypatch.setattr(dispatch_client, "_tls", lambda: ssl.create_default_context(cafile=made))
    server = Server(YES)

    async def run() -> tuple[CallOutcome, CallOutcome]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made, key)
        async with running(server, context) as (client, port):
            peer = Peer(f"https://127.0.0.1:{port}/", "demo", TOKEN)
            return await twice(partial(client.call, peer, "run", b"{}", timeout_s=2))

    for outcome in in_loop(run()):
        assert outcome.delivery is (Delivery.ANSWERED if trusted else Delivery.NO)
        assert trusted or "certificate" in outcome.reason
    assert server.requests == (2 if trusted else 0)
    assert server.connections <= 1
