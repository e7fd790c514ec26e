"""Executor API behind a real waitress server."""

import socket
from collections.abc import Iterator

import pytest

from app.models.registry import Registration
from tests.support.api import CONTEXT, TOKEN, Executor
from tests.support.factories import all_rows
from tests.support.serving import serving

BODY = b'{"registryGroup":"EXECUTOR","registryKey":"billing-exec","registryValue":"http://10.1.2.3:9999/"}'


@pytest.fixture
def port(executor: Executor) -> Iterator[int]:
    with serving(executor.api) as port:
        yield port


def exchange(port: int, *requests: bytes) -> list[bytes]:
    """Send requests over one connection; return the response bodies."""
    bodies = []
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        stream = connection.makefile("rb")
        for request in requests:
            connection.sendall(request)
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            headers = {}
            while (line := stream.readline()) != b"\r\n":
                name, _, text = line.decode().partition(": ")
                headers[name.lower()] = text.strip()
            assert headers["content-type"] == "application/json"
            bodies.append(b"" if request.startswith(b"HEAD") else stream.read(int(headers["content-length"])))
    return bodies


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: admin.example:8080", f"XXL-JOB-ACCESS-TOKEN: {TOKEN}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_one_connection_serves_every_kind_of_request(port: int) -> None:
    length = f"Content-Length: {len(BODY)}"
    chunks = (
        b"".join(
            b"%x\r\n%s\r\n" % (len(BODY[at : at + 10]), BODY[at : at + 10]) for at in range(0, len(BODY), 10)
        )
        + b"0\r\n\r\n"
    )
    answers = exchange(
        port,
        post(
            f"{CONTEXT}/api/registry",
            BODY,
            length,
            "Content-Type: application/json;charset=UTF-8",
            "Connection: keep-alive",
        ),
        post(f"{CONTEXT}/api/registry", BODY, length),
        post(
            f"{CONTEXT}/api/registry", chunks, "Transfer-Encoding: chunked", "Content-Type: application/json"
        ),
        post(f"/{CONTEXT}/api//registry", BODY, length),
        post("//api/registry", BODY, length, "Content-Type: application/x-www-form-urlencoded"),
        post(f"{CONTEXT}/api/callback", b"[]", "Content-Length: 2"),
        post(f"{CONTEXT}/api/registry", b""),
        b"HEAD /xxl-job-admin/api/registry HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /xxl-job-admin/api/registry HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    ok = b'{"code":200,"msg":null,"content":null,"data":null}'
    assert answers[:6] == [ok] * 6
    assert b'"code":500,"msg":"Illegal Argument."' in answers[6]
    assert b"HttpMethod not support" in answers[8]
    assert len(all_rows(Registration)) == 1


def test_a_chunked_body_in_small_pieces(port: int) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"
    (answer,) = exchange(port, post("/api/registry", chunks, "Transfer-Encoding: chunked"))
    assert answer.startswith(b'{"code":200,')
