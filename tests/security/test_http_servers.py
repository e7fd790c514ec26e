"""HTTP servers of console and executor: ambiguous requests, half-sent requests, too many connections."""

import json
import resource
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

import wsgi
from app.settings.config import Config
from executor_client.httpd.server import (
    HEAD_MAX_BYTES,
    PIPELINED_MAX,
    ConnectionLimits,
    LimitedServer,
    create_http_server,
    origin_of,
)
from executor_client.mounting.own_server import OwnServer
from tests.acceptance.cluster import TOKEN, Cluster
from tests.support.eventually import eventually

#: seconds for an answer on a loaded machine
TIMEOUT_S = 20
POST = b"POST /callback HTTP/1.1\r\nHost: x\r\n"
#: a request hidden in the body of another
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass
class Seen:
    """Paths that an application was called with."""

    paths: list[str]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read()
        self.paths.append(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


@contextmanager
def serving(application: Any, limits: ConnectionLimits, **adjustments: Any) -> Iterator[LimitedServer]:
    """Run a server on a free loopback port.

    With ``cleanup_interval=0`` it looks for overdue connections all the time.
    """
    options = {"host": "127.0.0.1", "port": 0, "threads": 2, "cleanup_interval": 0, "asyncore_use_poll": True}
    server = create_http_server(application, limits, **options, **adjustments)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.asyncore.loop(timeout=0.05, use_poll=True, map=server._map, count=1)
        server.task_dispatcher.shutdown()
        server.asyncore.close_all(server._map)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen([])


@pytest.fixture(scope="module")
def port(seen: Seen) -> Iterator[int]:
    with serving(seen, ConnectionLimits()) as server:
        yield int(server.effective_port)


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S, source_address=(source, 0))


def read_all(connection: socket.socket) -> bytes:
    """Return what is received until the server closes the connection."""
    received = b""
    while piece := connection.recv(65_536):
        received += piece
    return received


def exchange(port: int, data: bytes) -> bytes:
    """Send bytes; return everything received until the server closes the connection."""
    with connect(port) as connection:
        connection.sendall(data)
        return read_all(connection)


AMBIGUOUS = {
    "CL and TE": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE before CL 0": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 34\r\n\r\n" + HIDDEN,
    "the same length twice": POST + b"Content-Length: 0\r\ncontent-length: 0\r\n\r\n" + HIDDEN,
    "list of lengths": POST + b"Content-Length: 0, 34\r\n\r\n" + HIDDEN,
    "signed length": POST + b"Content-Length: +0\r\n\r\n" + HIDDEN,
    "empty length": POST + b"Content-Length:\r\n\r\n" + HIDDEN,
    "length of 5,000 digits": POST + b"Content-Length: " + b"0" * 5_000 + b"\r\n\r\n" + HIDDEN,
    "gzip, chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE identity": POST + b"Transfer-Encoding: identity\r\n\r\n" + HIDDEN,
    "TE xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + HIDDEN,
    "TE empty": POST + b"Transfer-Encoding:\r\n\r\n" + HIDDEN,
    "TE comma": POST + b"Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE with control character": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "folded TE": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "folded field before TE": POST + b"X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n" + HIDDEN,
    "blank before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n" + HIDDEN,
    "TE in HTTP/1.0 kept alive": CHUNKED.replace(b"1.1\r\n", b"1.0\r\nConnection: keep-alive\r\n") + HIDDEN,
    "TE in HTTP/1.2": CHUNKED.replace(b"1.1", b"1.2") + b"0\r\n\r\n" + HIDDEN,
    "bare LF ends a field": POST + b"X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "bare CR ends a field": POST + b"X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "bare LF in the start line": b"POST / HTTP/1.1\nHost: x\r\n\r\n" + HIDDEN,
    "head of bare LF": (POST + b"\r\n").replace(b"\r", b"") + HIDDEN,
    "bare LF before the start line": b"\n" + POST + b"\r\n" + HIDDEN,
    "empty request": b"\r\n\r\n" + HIDDEN,
    "no host": b"GET /health HTTP/1.1\r\nX: a\r\n\r\n" + HIDDEN,
    "two hosts": POST + b"host: y\r\n\r\n" + HIDDEN,
    "two hosts in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Host: x\r\n\r\n" + HIDDEN,
    "chunk size with sign": CHUNKED + b"+0\r\n\r\n" + HIDDEN,
    "chunk size with prefix": CHUNKED + b"0x0\r\n\r\n" + HIDDEN,
    "chunk size with blank": CHUNKED + b"0 \r\n\r\n" + HIDDEN,
    "chunk size with underscore": CHUNKED + b"0_0\r\n\r\n" + HIDDEN,
    "chunk size with bare LF": CHUNKED + b"0\n\r\n\r\n" + HIDDEN,
    "chunk size ended by bare LF": CHUNKED + b"1\na\r\n0\r\n\r\n" + HIDDEN,
    "chunk size empty": CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "chunk size too long": CHUNKED + b"0" * 17 + b"\r\n\r\n" + HIDDEN,
    "chunk extension with bare LF": CHUNKED + b"1;x\n\r\na\r\n0\r\n\r\n" + HIDDEN,
    "chunk longer than its size": CHUNKED + b"1\r\nab\r\n0\r\n\r\n" + HIDDEN,
    "chunk ended by bare LF": CHUNKED + b"1\r\na\n0\r\n\r\n" + HIDDEN,
    "trailer with bare LF": CHUNKED + b"0\r\n\n" + HIDDEN,
    "trailer without colon": CHUNKED + b"0\r\n" + HIDDEN,
    "endless chunk line": CHUNKED + b"1;" + b"x" * 5_000,
    # the thread that serves all connections needs 5 ms for 8 KiB of them
    "chunks of one byte": CHUNKED + b"1\r\na\r\n" * 1_100 + b"0\r\n\r\n" + HIDDEN,
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_ambiguous_request_is_answered_400_and_closed(port: int, seen: Seen, name: str) -> None:
    seen.paths.clear()
    answer = exchange(port, AMBIGUOUS[name])
    assert answer[8:13] == b" 400 "
    assert answer.count(b"HTTP/1.") == 1
    assert seen.paths == []


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (POST + b"Content-Length: 3\r\n\r\nabc", b"abc"),
        (b"\r\n" + POST + b"\r\n", b""),
        (POST + b"Transfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", b"abc"),
        (CHUNKED + b"1\r\na\r\n0002\r\nbc\r\n0\r\nX-Sum: 1\r\n\r\n", b"abc"),
        (CHUNKED + b"0\r\n\r\n", b""),
        (CHUNKED + b"1\r\na\r\n" * 1_000 + b"0\r\n\r\n", b"a" * 1_000),
        # a body may hold line ends of any kind
        (POST + b"Content-Length: 4\r\n\r\na\nb\r", b"a\nb\r"),
        # waitress would wait for a body and take the next request for a part of this one
        (POST + b"Expect: 100-continue\r\n\r\n", b""),
    ],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "by bytes"])
def test_a_valid_request_is_answered_and_the_next_one_too(
    port: int, seen: Seen, sent: bytes, body: bytes, at_once: bool
) -> None:
    seen.paths.clear()
    last = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with connect(port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = sent + last
        for piece in [data] if at_once else [data[at : at + 1] for at in range(len(data))]:
            connection.sendall(piece)
        answer = read_all(connection)
    assert seen.paths == ["/callback", "/last"]
    assert b"\r\n\r\n" + body + b"HTTP/1.1 200 OK" in answer


def test_a_request_of_http_1_0_needs_no_host(port: int) -> None:
    assert exchange(port, b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 ")


def test_a_burst_of_requests_is_cut(port: int, seen: Seen) -> None:
    """The thread that reads from all connections needs 50 ms to parse 8 KiB of the shortest requests."""
    seen.paths.clear()
    answer = exchange(port, b"GET / HTTP/1.1\r\nHost:\r\n\r\n" * 200)
    assert answer.count(b" 400 Bad Request") == 1
    assert PIPELINED_MAX <= len(seen.paths) < 100


def test_an_endless_head_is_refused(port: int) -> None:
    assert exchange(port, (POST + b"X: ").ljust(HEAD_MAX_BYTES, b"x"))[8:13] == b" 431 "


def test_a_client_that_asks_before_it_sends_a_long_body_is_refused() -> None:
    with serving(Seen([]), ConnectionLimits(), max_request_body_size=100) as server:
        head = POST + b"Content-Length: 101\r\nExpect: 100-continue\r\n\r\n"
        assert exchange(server.effective_port, head)[8:13] == b" 413 "


def test_the_executor_refuses_ambiguous_requests_too() -> None:
    server = OwnServer(Flask("executor"), "127.0.0.1", 0)
    server.start()
    try:
        for name in ("CL and TE", "no host", "two hosts"):
            assert exchange(server.port, AMBIGUOUS[name])[8:13] == b" 400 "
    finally:
        server.stop()


def is_closed_after(connection: socket.socket, data: bytes) -> bool:
    """Send bytes; return whether the server has closed the connection."""
    connection.settimeout(0.01)
    try:
        connection.sendall(data)
        return connection.recv(65_536) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(
    ("begin", "limits"),
    [
        (b"POST / HTTP/1.1\r\nX: ", ConnectionLimits(head_s=0.2)),
        (POST + b"Content-Length: 10000\r\n\r\n", ConnectionLimits(request_s=0.2)),
        (CHUNKED + b"ffff\r\n", ConnectionLimits(request_s=0.2)),
        (CHUNKED + b"1;", ConnectionLimits(request_s=0.2)),
    ],
    ids=["head", "body", "chunk", "chunk size"],
)
def test_a_request_sent_byte_by_byte_is_closed_after_a_total_time(
    begin: bytes, limits: ConnectionLimits
) -> None:
    with serving(Seen([]), limits) as server, connect(server.effective_port) as connection:
        connection.sendall(begin)
        eventually(lambda: is_closed_after(connection, b"1"))


def test_a_body_may_take_longer_while_it_arrives_fast_enough() -> None:
    limits = ConnectionLimits(request_s=60, body_bytes_per_s=10)
    with serving(Seen([]), limits) as server, connect(server.effective_port) as connection:
        connection.sendall(POST + b"Content-Length: 600\r\n\r\n" + b"a" * 500)
        channel = eventually(lambda: next(iter([*server.active_channels.values()]), None))
        eventually(lambda: channel.request and channel.request.body_bytes_received == 500)
        assert not channel.is_overdue(limits, channel.since_s + 109)
        assert channel.is_overdue(limits, channel.since_s + 111)


def half_sent(port: int, count: int, source: str = "127.0.0.1") -> list[socket.socket]:
    """Open connections with half a request each."""
    connections = [connect(port, source) for _ in range(count)]
    for connection in connections:
        with suppress(OSError):  # refused
            connection.sendall(b"POST /xxl-job-admin/login HTTP/1.1\r\nX-a: ")
    return connections


def answer_of(port: int, source: str) -> bytes:
    with connect(port, source) as connection:
        connection.sendall(POST + b"Connection: close\r\n\r\n")
        return read_all(connection)


def channels_of(server: LimitedServer) -> int:
    return len(server.active_channels)


def test_an_address_holds_no_more_than_its_share_of_connections(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Seen([]), ConnectionLimits(address_max=3)) as server, ExitStack() as opened:
        port = server.effective_port
        for connection in half_sent(port, 3):
            opened.enter_context(connection)
        eventually(lambda: all(channel.request for channel in [*server.active_channels.values()]))
        for _ in range(2):
            assert eventually(lambda: is_closed_after(opened.enter_context(connect(port)), b"G"))
        assert answer_of(port, "127.0.0.2").startswith(b"HTTP/1.1 200 ")
    refused = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert refused == ["connections refused address=127.0.0.1 connections_max=3 refused=1"]


def test_an_address_closes_its_oldest_idle_connection_for_a_new_one() -> None:
    limits = ConnectionLimits(address_max=2, idle_s=0)
    with serving(Seen([]), limits) as server, ExitStack() as opened:
        port = server.effective_port
        first, second = (opened.enter_context(connect(port)) for _ in range(2))
        eventually(lambda: channels_of(server) == 2)
        assert answer_of(port, "127.0.0.1").startswith(b"HTTP/1.1 200 ")
        assert read_all(first) == b""
        second.sendall(POST + b"Connection: close\r\n\r\n")
        assert read_all(second).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("proxies", "address_max"), [(0, 500), (1, None)])
def test_behind_a_proxy_connections_have_no_share(proxies: int, address_max: int | None) -> None:
    assert wsgi._address_max(Config(proxy_count=proxies), 2_000) == address_max


def test_idle_connections_of_many_addresses_keep_none_out() -> None:
    limits = ConnectionLimits(idle_s=0)
    with serving(Seen([]), limits, connection_limit=12) as server, ExitStack() as opened:
        port = server.effective_port
        for host in range(1, 31):
            opened.enter_context(connect(port, f"127.0.0.{host}"))
        assert answer_of(port, "127.0.0.99").startswith(b"HTTP/1.1 200 ")


def test_idle_connections_are_closed_after_a_time() -> None:
    with (
        serving(Seen([]), ConnectionLimits(), channel_timeout=0) as server,
        connect(server.effective_port) as idle,
    ):
        assert read_all(idle) == b""


def test_a_client_that_does_not_read_its_answer_is_closed() -> None:
    called = threading.Event()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        called.set()
        start_response("200 OK", [])
        return [b"x" * 8_000_000]

    with (
        serving(application, ConnectionLimits(), channel_timeout=1) as server,
        connect(server.effective_port) as connection,
    ):
        connection.sendall(POST + b"\r\n")
        assert called.wait(TIMEOUT_S)
        eventually(lambda: channels_of(server) == 0)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_network_counts_as_one_address(address: str, origin: str) -> None:
    assert origin_of(address) == origin


IDLE, HALF_SENT = 1_000, 1_100


@pytest.fixture
def many_files() -> None:
    """Allow this process as many open files as the attack needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = IDLE + HALF_SENT + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"needs {needed} open files, the limit is {hard}")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def api_call(port: int, action: str, body: object) -> dict[str, Any]:
    """Send a request of an executor from another address than the attacker's."""
    data = json.dumps(body).encode()
    head = (
        f"POST /xxl-job-admin/api/{action} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"XXL-JOB-ACCESS-TOKEN: {TOKEN}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with connect(port, "127.0.0.2") as connection:
        connection.sendall(head.encode() + data)
        return dict(json.loads(read_all(connection).rpartition(b"\r\n\r\n")[2]))


@pytest.mark.usefixtures("many_files")
def test_idle_and_half_sent_connections_stop_no_callback(database_url: str, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, database_url, forks=True)
    try:
        cluster.start_console()
        with ExitStack() as opened:
            for _ in range(IDLE):
                opened.enter_context(connect(cluster.port))
            for connection in half_sent(cluster.port, HALF_SENT):
                opened.enter_context(connection)
            registration = {
                "registryGroup": "EXECUTOR",
                "registryKey": "billing",
                "registryValue": "http://10.1.2.3:9999/",
            }
            assert api_call(cluster.port, "registry", registration)["code"] == 200
            assert api_call(cluster.port, "callback", [])["code"] == 200
        answer = exchange(cluster.port, AMBIGUOUS["CL and TE"])
        assert answer[8:13] == b" 400 "
        assert b"\r\nX-Content-Type-Options: nosniff\r\n" in answer
    finally:
        cluster.programs.stop_all()
