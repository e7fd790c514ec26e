"""An executor that answers as it is told: a real HTTP server on a free port, which keeps every request byte for byte.

with FakeExecutor() as executor:
    executor.tell("run", Answer.json(code=500, msg="busy"), Answer.json())   # first this, then for ever that
    ...
    (request,) = executor.requests
"""

import json
import socket
import struct
import threading
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self

#: closes with a reset instead of an orderly end
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
READ_BYTES = 1024 * 1024


class Fault(Enum):
    """What happens instead of an answer."""

    #: reset once the head is there, the body unread
    RESET_BEFORE_BODY = auto()
    #: reset once the whole request is there
    RESET_AFTER_BODY = auto()
    #: close in order, without a word
    CLOSE = auto()
    #: half of the answer, then reset
    CUT = auto()
    #: the connection stays open, nothing comes
    SILENCE = auto()


@dataclass(frozen=True)
class Answer:
    """One answer; ``wait`` holds it back until the event is set, ``drip_s`` sends its bytes one at a time."""

    body: bytes = b'{"code":200}'
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html;charset=UTF-8"),)
    fault: Fault | None = None
    wait: threading.Event | None = None
    drip_s: float = 0.0
    #: a server that closes its connections after each answer without saying so, as Node does after a while
    close_after: bool = False

    @classmethod
    def json(cls, code: int = 200, **more: Any) -> "Answer":
        """Return an envelope."""
        return cls(json.dumps({"code": code, **more}).encode())

    def but(self, **changes: Any) -> "Answer":
        """Return the same with changes."""
        return replace(self, **changes)

    @property
    def raw(self) -> bytes:
        """The answer as bytes."""
        head = [
            f"HTTP/1.1 {self.status} Said",
            f"Content-Length: {len(self.body)}",
            *(f"{name}: {text}" for name, text in self.headers),
        ]
        return "\r\n".join([*head, "", ""]).encode() + self.body


@dataclass(frozen=True)
class Request:
    """One request as it came in."""

    head: bytes
    body: bytes
    #: how the bytes came: sizes of the reads that brought them
    reads: tuple[int, ...]
    #: which connection, counted from 1
    connection: int

    @property
    def target(self) -> str:
        """The path as it was asked for."""
        return self.head.split(b" ", 2)[1].decode()

    @property
    def action(self) -> str:
        """The last part of the path."""
        return self.target.rpartition("/")[2]

    @property
    def headers(self) -> dict[str, str]:
        """The headers, names as they were spelt."""
        lines = self.head.decode().split("\r\n")[1:]
        return {name: text for name, _, text in (line.partition(": ") for line in lines if line)}

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class FakeExecutor:
    """The server; use it as a context manager."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._told: dict[str, list[Answer]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._connections: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=200)
        self._thread = threading.Thread(target=self._accept, name="fake-executor", daemon=True)
        #: base address, with a slash at the end
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}/"

    def tell(self, action: str, *answers: Answer) -> None:
        """Answer an action so, one after the other; the last one for ever. ``*``: whatever is not told."""
        with self._lock:
            self._told[action] = list(answers)

    def asked(self, action: str) -> list[Request]:
        """Return the requests for one action."""
        with self._lock:
            return [request for request in self.requests if request.action == action]

    @property
    def connections(self) -> int:
        """How many connections have been opened."""
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
        except OSError:  # the client, or the end of the test, has closed it
            return

    def _exchange(self, connection: socket.socket, number: int) -> bool:
        """Read one request, answer it; False where the connection has ended."""
        head, body, reads = b"", b"", []
        while b"\r\n\r\n" not in head:
            part = connection.recv(READ_BYTES)
            if not part:
                return False
            reads.append(len(part))
            head += part
        head, _, body = head.partition(b"\r\n\r\n")
        seen = Request(head, body, tuple(reads), number)
        answer = self._next(seen.action)
        if answer.fault is Fault.RESET_BEFORE_BODY:
            return self._reset(connection, seen)
        length = int({name.lower(): text for name, text in seen.headers.items()}.get("content-length", "0"))
        while len(body) < length:
            part = connection.recv(READ_BYTES)
            if not part:
                return False
            reads.append(len(part))
            body += part
        return self._answer(connection, Request(head, body, tuple(reads), number), answer)

    def _next(self, action: str) -> Answer:
        with self._lock:
            told = self._told.get(action) or self._told.get("*") or [Answer()]
            return told.pop(0) if len(told) > 1 else told[0]

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
