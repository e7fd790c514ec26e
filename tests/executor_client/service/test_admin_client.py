"""Connections to an admin and to a console: what a broken one is called, TLS, proxies, reuse."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from executor_client import ExecutorConfig
from executor_client.api.errors import ApiUnreachable
from executor_client.api.http import AUTHORITIES, HttpTransport
from executor_client.api.transport import Request
from executor_client.config.config import Timing
from executor_client.service.admin_client import AdminClient
from executor_client.service.http_pool import proxy_of_environment
from executor_client.wire.errors import AdminUnreachable
from tests.support.serving import serving

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: "
BODY = b'{"code":200,"msg":"fine"}'
FINE = HEAD + str(len(BODY)).encode() + b"\r\n\r\n" + BODY


@contextmanager
def answering(answer: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve one connection at a time on a free port: the answer, then the end; ``b"-"`` never ends."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.02)

        def serve() -> None:
            while not over.is_set():
                try:
                    connection = server.accept()[0]
                    connection.settimeout(5)
                    with tls.wrap_socket(connection, server_side=True) if tls else connection as wire:
                        received = piece = wire.recv(65_536)
                        while piece and received.startswith(b"POST") and not received.endswith(b"{}"):
                            received += (piece := wire.recv(65_536))  # unread, it would reset the connection
                        wire.sendall(answer.removesuffix(b"-"))
                        if answer.endswith(b"-"):
                            over.wait(5)
                except OSError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


@pytest.fixture
def call(config: Callable[..., ExecutorConfig]) -> Callable[[str], tuple[int, str | None]]:
    def of(url: str) -> tuple[int, str | None]:
        made = AdminClient(url, config(timing=Timing(admin_timeout_s=0.3)), boot_id="b")
        with closing(made):
            reply = made.call("registry", b"{}")
            return reply.code, reply.msg

    return of


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "the connection was closed without a response"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "the server at this address does not speak HTTP"),
        (HEAD + b"100\r\n\r\n{}", "the connection was closed in the middle of the response"),
        (b"-", "no response in time"),
        (HEAD + b"100\r\n\r\n{}-", "no response in time"),
    ],
)
def test_a_broken_answer_is_named(
    call: Callable[[str], tuple[int, str | None]], answer: bytes, reason: str
) -> None:
    with answering(answer) as port, pytest.raises(AdminUnreachable) as raised:
        call(f"http://127.0.0.1:{port}/x")
    assert raised.value.reason == reason


def test_a_redirect_is_not_followed(call: Callable[[str], tuple[int, str | None]]) -> None:
    with answering(b"HTTP/1.1 302 Found\r\nLocation: https://e/\r\nContent-Length: 0\r\n\r\n") as port:
        code, message = call(f"http://127.0.0.1:{port}/x")
    assert (code, message) == (500, "HTTP status 302: redirected to https://e/; check the path")


def test_no_more_than_the_bound_of_an_answer_is_read(call: Callable[[str], tuple[int, str | None]]) -> None:
    with answering(HEAD + b"900000\r\n\r\n" + b"x" * 100_000 + b"-") as port:
        assert call(f"http://127.0.0.1:{port}/x")[0] == 500


def test_calls_share_a_connection(config: Callable[..., ExecutorConfig]) -> None:
    ports = []

    def application(environ: dict[str, str], start_response: Callable[..., object]) -> list[bytes]:
        ports.append((environ["REMOTE_PORT"], environ.get("HTTP_AUTHORIZATION")))
        start_response("200 OK", [("Content-Length", str(len(BODY)))])
        return [BODY]

    with serving(application) as port:
        admin = AdminClient(f"http://ann:p%40@127.0.0.1:{port}", config(), boot_id="b")
        with closing(admin):
            assert [admin.call("a", b"{}").code, admin.call("b", b"{}").code] == [200, 200]
    assert ports == [(ports[0][0], "Basic YW5uOnBA")] * 2


def test_an_app_name_in_any_script_is_sent(config: Callable[..., ExecutorConfig]) -> None:
    """XXL-JOB takes such names for groups."""
    sent = []

    def application(environ: dict[str, str], start_response: Callable[..., object]) -> list[bytes]:
        sent.append(environ["HTTP_XXL_JOB_APPNAME"].encode("latin-1").decode())
        start_response("200 OK", [("Content-Length", str(len(BODY)))])
        return [BODY]

    with serving(application) as port:
        admin = AdminClient(f"http://127.0.0.1:{port}", config(appname="订单"), boot_id="b")
        with closing(admin):
            assert admin.register("订单", "http://127.0.0.1:9999/").code == 200
    assert sent == ["订单"]


def test_an_error_does_not_show_user_and_password(config: Callable[..., ExecutorConfig]) -> None:
    """It is stored in the log of the run whose result could not be reported."""
    admin = AdminClient("http://ann:p%40@127.0.0.1:1/x", config(), boot_id="b")
    with closing(admin), pytest.raises(AdminUnreachable, match="^http://127.0.0.1:1/x: "):
        admin.call("a", b"{}")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for 127.0.0.1, and the context of its server."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "made.pem", folder / "key.pem"
    request = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=a -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*request.split(), "-keyout", key, "-out", made], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return made, context


def test_tls_is_verified(
    call: Callable[[str], tuple[int, str | None]],
    certificate: tuple[Path, ssl.SSLContext],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, context = certificate
    for name in AUTHORITIES:
        monkeypatch.delenv(name, raising=False)
    with answering(FINE, context) as port:
        url = f"https://127.0.0.1:{port}/x"
        with pytest.raises(AdminUnreachable, match="certificate verify failed: self-signed certificate"):
            call(url)
        with pytest.raises(ApiUnreachable, match="certificate verify failed: self-signed certificate"):
            HttpTransport(url, "t").send(Request("GET", "/me"))
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
        assert call(url) == (200, "fine")
        transport = HttpTransport(url, "t")
        with closing(transport):
            assert transport.send(Request("GET", "/me")).read() == BODY
        monkeypatch.setenv("SSL_CERT_FILE", "/no/such.pem")
        with pytest.raises(AdminUnreachable, match="file of TLS authorities does not exist: /no/such.pem"):
            call(url)
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(ApiUnreachable, match="no TLS is spoken there; the address may begin with http:"):
            HttpTransport(f"https://127.0.0.1:{port}", "t").send(Request("GET", "/me"))
    with (
        answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        pytest.raises(AdminUnreachable, match="no TLS is spoken there; the address may begin with http:"),
    ):
        call(f"https://127.0.0.1:{port}/x")


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://jobs.example/x", None),
        ({"http_proxy": "http://p:1"}, "http://jobs.example/x", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "https://jobs.example/x", None),
        ({"https_proxy": "p:1"}, "https://jobs.example/x", "http://p:1"),
        ({"all_proxy": "socks5://p:1"}, "https://jobs.example/x", "socks5://p:1"),
        ({"http_proxy": "http://p:1", "no_proxy": ".example"}, "http://jobs.example/x", None),
        ({"http_proxy": "http://p:1", "no_proxy": "other, 10.0.0.0/8"}, "http://10.1.1.1:81/x", None),
        ({"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://11.1.1.1/x", "http://p:1"),
    ],
)
def test_the_proxy_of_the_environment(
    environment: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of_environment(url) == proxy


def test_a_console_is_called_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(FINE) as port:
        monkeypatch.setenv("http_proxy", f"http://ann:secret@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        transport = HttpTransport("http://jobs.example/x", "t")
        with closing(transport):
            assert transport.send(Request("GET", "/me")).read() == BODY
