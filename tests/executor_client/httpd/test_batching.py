"""Batched endpoints of the HTTP server: one call for what waits together, answers as from the application."""

import http.client
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import pytest

from executor_client.httpd.batching import (
    BODY_MAX_BYTES,
    BatchAnswer,
    BatchedEndpoints,
    BatchRequest,
)
from executor_client.httpd.server import ConnectionLimits, LimitedServer, create_http_server
from tests.support.eventually import eventually

Connect = Callable[[int], http.client.HTTPConnection]

TIMEOUT_S = 20
POST = b"POST /run HTTP/1.1\r\nHost: x\r\n"


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer with what the application was asked."""
    body = b"application " + environ["wsgi.input"].read(100)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def echo(request: BatchRequest) -> BatchAnswer:
    return BatchAnswer(200, (("X-Batch", "1"),), b"batch " + request.body)


class Batches:
    """Function of the endpoints; with ``hold`` the next call waits for ``go``."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Event()

    def hold(self) -> None:
        self.go.clear()
        self.entered.clear()

    def __call__(self, requests: list[BatchRequest]) -> Sequence[BatchAnswer | None]:
        self.sizes.append(len(requests))
        self.entered.set()
        assert self.go.wait(TIMEOUT_S)
        if any(request.body == b"fail" for request in requests):
            raise RuntimeError("failed")
        return [None if request.body == b"other" else echo(request) for request in requests]


@contextmanager
def serving(*answers: Batches) -> Iterator[LimitedServer]:
    """Serve ``/run`` by the first function, ``/run2`` by the second."""
    batches = [
        BatchedEndpoints(path, path.__eq__, answer)
        for path, answer in zip(("/run", "/run2"), answers, strict=False)
    ]
    with serving_by(application, batches=batches) as server:
        yield server


@contextmanager
def serving_by(answer: Callable[..., Any], **options: Any) -> Iterator[LimitedServer]:
    server = create_http_server(
        answer,
        ConnectionLimits(),
        **options,
        host="127.0.0.1",
        port=0,
        threads=2,
        asyncore_use_poll=True,
    )
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.asyncore.loop(timeout=1, use_poll=True, map=server._map, count=1)
        server.task_dispatcher.shutdown()
        server.asyncore.close_all(server._map)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        stop.set()
        with suppress(OSError):
            server.pull_trigger()
        thread.join()


@pytest.fixture
def batches() -> Batches:
    return Batches()


@pytest.fixture
def port(batches: Batches) -> Iterator[int]:
    with serving(batches) as server:
        yield int(server.effective_port)


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as opened:

        def connected(port: int) -> http.client.HTTPConnection:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
            return opened.enter_context(closing(connection))

        yield connected


def ask(
    connection: http.client.HTTPConnection, body: bytes, method: str = "POST", path: str = "/run"
) -> bytes:
    connection.request(method, path, body)
    return connection.getresponse().read()


def exchange(port: int, data: bytes) -> bytes:
    """Send bytes; return everything received until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(data)
        received = b""
        while piece := connection.recv(65_536):
            received += piece
    return received


def with_body(body: bytes, more: bytes = b"") -> bytes:
    return POST + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_requests_that_wait_together_are_one_call(connect: Connect, port: int, batches: Batches) -> None:
    batches.hold()
    connections = [connect(port) for _ in range(4)]
    connections[0].request("POST", "/run", b"0")
    assert batches.entered.wait(TIMEOUT_S)
    for number, connection in enumerate(connections[1:], 1):
        connection.request("POST", "/run", b"%d" % number)
    # an answer of the application proves that the loop has read the requests sent before it
    assert ask(connect(port), b"", "GET", "/") == b"application "
    batches.go.set()
    assert [connection.getresponse().read() for connection in connections] == [
        b"batch %d" % number for number in range(4)
    ]
    assert sum(batches.sizes) == 4
    assert len(batches.sizes) < 4


def test_a_connection_goes_on_after_an_answer(connect: Connect, port: int) -> None:
    connection = connect(port)
    assert [ask(connection, body) for body in (b"a", b"b")] == [b"batch a", b"batch b"]
    assert ask(connection, b"c", path="/other") == b"application c"
    assert ask(connection, b"d") == b"batch d"


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    other = with_body(b"2").replace(b"/run", b"/other")
    last = with_body(b"4", b"Connection: close\r\n")
    received = exchange(port, with_body(b"1") + other + with_body(b"other") + last + with_body(b"5"))
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in received.split(b"HTTP/1.1 200 OK")[1:]]
    assert bodies == [b"batch 1", b"application 2", b"application other", b"batch 4"]


@pytest.mark.parametrize(
    ("head", "closes"),
    [
        (b"Connection: close\r\n", b"Connection: close"),
        (b"Expect: 100-continue\r\nConnection: close\r\n", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"),
    ],
)
def test_the_head_of_a_request_is_observed(port: int, head: bytes, closes: bytes) -> None:
    received = exchange(port, with_body(b"a", head))
    assert closes in received
    assert received.endswith(b"\r\n\r\nbatch a")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/run", b"other"),
        ("POST", "/run?a=1", b"a"),
        ("POST", "/run/", b"a"),
        ("GET", "/run", b"a"),
        ("POST", "/run", b"x" * (BODY_MAX_BYTES + 1)),
    ],
    ids=["not taken", "query", "path", "method", "long body"],
)
def test_other_requests_are_the_applications(
    connect: Connect, port: int, method: str, path: str, body: bytes
) -> None:
    assert ask(connect(port), body, method, path) == b"application " + body[:100]


def test_endpoints_do_not_wait_for_others(connect: Connect) -> None:
    held, others = Batches(), Batches()
    with serving(held, others) as server:
        held.hold()
        waits = connect(server.effective_port)
        waits.request("POST", "/run", b"a")
        assert held.entered.wait(TIMEOUT_S)
        assert ask(connect(server.effective_port), b"b", path="/run2") == b"batch b"
        held.go.set()
        assert waits.getresponse().read() == b"batch a"
    assert (held.sizes, others.sizes) == ([1], [1])


def test_a_failed_call_is_answered_500_and_logged(
    connect: Connect, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect(port)
    connection.request("POST", "/run", b"fail")
    response = connection.getresponse()
    assert (response.status, response.read()) == (500, b"Internal Server Error\n")
    assert ask(connection, b"a") == b"batch a"
    failures = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in failures] == ["batch failed requests=1"]


def test_a_client_that_has_gone_stops_no_other(connect: Connect, port: int, batches: Batches) -> None:
    batches.hold()
    gone, waits = connect(port), connect(port)
    gone.request("POST", "/run", b"a")
    assert batches.entered.wait(TIMEOUT_S)
    gone.close()
    waits.request("POST", "/run", b"b")
    batches.go.set()
    assert waits.getresponse().read() == b"batch b"


def test_a_stop_answers_what_was_received(connect: Connect, batches: Batches) -> None:
    batches.hold()
    with serving(batches) as server:
        connections = [connect(server.effective_port) for _ in range(2)]
        for connection in connections:
            connection.request("POST", "/run", b"a")
        eventually(lambda: sum(bool(channel.requests) for channel in [*server.active_channels.values()]) == 2)
        stopping = threading.Thread(target=server.task_dispatcher.shutdown)
        stopping.start()
        batches.go.set()
        stopping.join(TIMEOUT_S)
        assert [connection.getresponse().read() for connection in connections] == [b"batch a"] * 2


class Held:
    """Application whose requests wait for ``go``, except those of ``/free``."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.entered = threading.Semaphore(0)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.entered.release()
        assert "/free" in environ["PATH_INFO"] or self.go.wait(TIMEOUT_S)
        return application(environ, start_response)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.go.set()


@pytest.fixture
def busy_port(connect: Connect, held: Held) -> Iterator[int]:
    """Port of a server with all threads of its pool in a request."""
    with serving_by(held, reserves=[{"/free", "/context/free"}, {"/held"}]) as server:
        for _ in range(2):
            connect(server.effective_port).request("GET", "/")
            assert held.entered.acquire(timeout=TIMEOUT_S)
        yield int(server.effective_port)
        held.go.set()


def test_a_reserved_path_is_answered_while_all_threads_are_busy(connect: Connect, busy_port: int) -> None:
    connection = connect(busy_port)
    for path in ("/free", "/context/free", "/free?a=1"):
        assert ask(connection, b"", "GET", path) == b"application "
    connection.request("HEAD", "/free")
    response = connection.getresponse()
    assert (response.status, response.headers["Content-Length"], response.read()) == (200, "12", b"")


def test_a_reserved_path_does_not_wait_for_another(connect: Connect, held: Held, busy_port: int) -> None:
    waits = connect(busy_port)
    waits.request("GET", "/held")
    assert held.entered.acquire(timeout=TIMEOUT_S)
    assert ask(connect(busy_port), b"", "GET", "/free") == b"application "
    held.go.set()
    assert waits.getresponse().read() == b"application "
