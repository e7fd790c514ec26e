"""Fake executor: an HTTP server on a free port with scripted answers, which records every request verbatim.

with FakeExecutor() as executor:
    executor.respond("run", Answer.json(code=500, msg="busy"), Answer.json())   # the last one repeats
    ...
    (request,) = executor.requests
"""

import json
import socket
import struct
import threading
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self

from app.clock import Millis, now_ms

#: closes with a reset instead of an orderly end
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
READ_BYTES = 1024 * 1024


class Fault(Enum):
    """Failure instead of an answer."""

    #: reset after the request head, with the body unread
    RESET_BEFORE_BODY = auto()
    #: reset after the whole request
    RESET_AFTER_BODY = auto()
    #: close the connection without a response
    CLOSE = auto()
    #: reset after half of the response
    CUT = auto()
    #: keep the connection open and send nothing
    SILENCE = auto()


@dataclass(frozen=True)
class Answer:
    """Scripted answer; ``wait`` delays it until the event is set, ``drip_s`` pauses after each byte."""

    body: bytes = b'{"code":200}'
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html;charset=UTF-8"),)
    fault: Fault | None = None
    wait: threading.Event | None = None
    drip_s: float = 0.0
    #: close the connection after the response without a Connection header, as Node does after a while
    close_after: bool = False
    #: sent as it is, instead of status, headers and body
    verbatim: bytes = b""

    @classmethod
    def json(cls, code: int = 200, **more: Any) -> "Answer":
        """Return an answer with an envelope."""
        return cls(json.dumps({"code": code, **more}).encode())

    def but(self, **changes: Any) -> "Answer":
        """Return a copy with changes."""
        return replace(self, **changes)

    @property
    def raw(self) -> bytes:
        """Response as bytes."""
        if self.verbatim:
            return self.verbatim
        head = [
            f"HTTP/1.1 {self.status} Reason",
            f"Content-Length: {len(self.body)}",
            *(f"{name}: {text}" for name, text in self.headers),
        ]
        return "\r\n".join([*head, "", ""]).encode() + self.body


@dataclass(frozen=True)
class Request:
    """Received request."""

    head: bytes
    body: bytes
    #: sizes of the reads that received it
    reads: tuple[int, ...]
    #: number of the connection, from 1
    connection: int
    #: when it had been read
    received_ms: Millis = field(default_factory=now_ms)

    @property
    def target(self) -> str:
        """Request target."""
        return self.head.split(b" ", 2)[1].decode()

    @property
    def action(self) -> str:
        """Last part of the path."""
        return self.target.rpartition("/")[2]

    @property
    def headers(self) -> dict[str, str]:
        """Headers with names as received."""
        lines = self.head.decode().split("\r\n")[1:]
        return {name: text for name, _, text in (line.partition(": ") for line in lines if line)}

    @property
    def json(self) -> Any:
        """Parsed body."""
        return json.loads(self.body)


class FakeExecutor:
    """The server, a context manager."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._answers: dict[str, list[Answer]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._connections: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=200)
        self._thread = threading.Thread(target=self._accept, name="fake-executor", daemon=True)
        #: base URL with a trailing slash
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}/"

    def respond(self, action: str, *answers: Answer) -> None:
        """Set the answers to an action, in order; the last one repeats. ``*``: all other actions."""
        with self._lock:
            self._answers[action] = list(answers)

    def requests_for(self, action: str) -> list[Request]:
        """Return the requests for an action."""
        with self._lock:
            return [request for request in self.requests if request.action == action]

    @property
    def connections(self) -> int:
        """Number of connections opened so far."""
        return len(self._connections)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            number = len(self._connections)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            while not self._closing.is_set() and self._exchange(connection, number):
                pass
        except OSError:  # closed by the client or the end of the test
            return

    def _exchange(self, connection: socket.socket, number: int) -> bool:
        """Read and answer one request; False if the connection has ended."""
        head, body, reads = b"", b"", []
        while b"\r\n\r\n" not in head:
            part = connection.recv(READ_BYTES)
            if not part:
                return False
            reads.append(len(part))
            head += part
        head, _, body = head.partition(b"\r\n\r\n")
        request = Request(head, body, tuple(reads), number)
        answer = self._next(request.action)
        if answer.fault is Fault.RESET_BEFORE_BODY:
            return self._reset(connection, request)
        length = int(
            {name.lower(): text for name, text in request.headers.items()}.get("content-length", "0")
        )
        while len(body) < length:
            part = connection.recv(READ_BYTES)
            if not part:
                return False
            reads.append(len(part))
            body += part
        return self._answer(connection, Request(head, body, tuple(reads), number), answer)

    def _next(self, action: str) -> Answer:
        with self._lock:
            answers = self._answers.get(action) or self._answers.get("*") or [Answer()]
            return answers.pop(0) if len(answers) > 1 else answers[0]

    def _answer(self, connection: socket.socket, request: Request, answer: Answer) -> bool:
        with self._lock:
            self.requests.append(request)
        if answer.wait is not None:
            answer.wait.wait(30)
        if answer.fault is Fault.RESET_AFTER_BODY:
            return _close_with_reset(connection)
        if answer.fault is Fault.CUT:
            connection.sendall(answer.raw[: -len(answer.body) // 2 or None])
            return _close_with_reset(connection)
        if answer.fault is Fault.SILENCE:
            return not self._closing.wait(30)
        if answer.fault is Fault.CLOSE:
            connection.shutdown(socket.SHUT_RDWR)
            return False
        self._send(connection, answer)
        if answer.close_after:
            connection.shutdown(socket.SHUT_RDWR)
        return not answer.close_after

    def _send(self, connection: socket.socket, answer: Answer) -> None:
        if not answer.drip_s:
            connection.sendall(answer.raw)
            return
        for byte in answer.raw:
            connection.sendall(bytes([byte]))
            if self._closing.wait(answer.drip_s):
                return

    def _reset(self, connection: socket.socket, request: Request) -> bool:
        with self._lock:
            self.requests.append(request)
        return _close_with_reset(connection)


def _close_with_reset(connection: socket.socket) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    connection.close()
    return False
