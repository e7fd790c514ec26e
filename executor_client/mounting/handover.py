"""Handover: several worker processes of one application share an executor.

The server of the application spreads connections over its workers, but only one of them holds the executor.
The others forward the requests of admins to it, over a socket that only their user can connect to.
"""

import contextlib
import json
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from executor_client.service.answers import Answer, answer_from, answer_head
from executor_client.service.endpoints import BODY_MAX_BYTES, Request

#: threads that answer the requests of other workers
THREADS = 8
BACKLOG = 128
#: longest answer of the holder, in seconds; admins wait 3 s to 10 s
ANSWER_TIMEOUT_S = 10.0
HEAD_MAX_BYTES = 256 * 1024
#: longest answer: a page of a log, as JSON
ANSWER_MAX_BYTES = 64 * 1024 * 1024
#: prefix of the socket's folder
PREFIX = "xxl-executor-"
#: longest path of the folder for temporary files; Linux allows 107 bytes for a socket, macOS 103
TEMPORARY_MAX_BYTES = 75
_LENGTHS = struct.Struct("!II")


class HandoverServer:
    """Answers the requests that other workers forward; a file has the path of its socket."""

    def __init__(self, file: Path, answer: Callable[[Request], Answer]) -> None:
        """Listen; raise OSError."""
        self._file = file
        self._answer = answer
        remove_socket(file)
        # Not in the home, because the path of a socket is limited to about 100 bytes.
        usual = tempfile.gettempdir()
        folder = usual if len(os.fsencode(usual)) <= TEMPORARY_MAX_BYTES else "/tmp"  # nosec B108
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        self._path = self._folder / "s"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self._path))
        self._socket.listen(BACKLOG)
        self._stopping = False

    def start(self) -> None:
        """Serve in threads, then publish the socket."""
        for number in range(THREADS):
            threading.Thread(target=self._serve, name=f"handover-{number}", daemon=True).start()
        new = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        new.touch(mode=0o600)
        new.write_text(str(self._path), encoding="utf-8")
        new.replace(self._file)

    def stop(self) -> None:
        """Stop listening."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        remove_socket(self._file)

    def abandon(self) -> None:
        """Close the copy of the socket that a fork has made."""
        self._stopping = True
        self._socket.close()

    def _serve(self) -> None:
        while not self._stopping:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed, or no descriptor left
                threading.Event().wait(0.1)
                continue
            with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                connection.settimeout(ANSWER_TIMEOUT_S)
                head, body = _receive(connection, BODY_MAX_BYTES)
                answer = self._answer(Request(**head, body=body))
                _send(connection, answer_head(answer), answer.body)


def ask(file: Path, request: Request) -> Answer:
    """Return the holder's answer; raise OSError or ValueError if there is none."""
    path = file.read_text(encoding="utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_TIMEOUT_S)
        connection.connect(path)
        head = asdict(replace(request, body=b""))
        del head["body"]
        _send(connection, head, request.body)
        return answer_from(*_receive(connection, ANSWER_MAX_BYTES))


def remove_socket(file: Path) -> None:
    """Remove a holder's file and the socket that it names, which a killed holder leaves behind."""
    try:
        path = Path(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    with contextlib.suppress(OSError):
        file.unlink()
    if path.parent.name.startswith(PREFIX):
        with contextlib.suppress(OSError):
            path.unlink()
            path.parent.rmdir()


def _send(connection: socket.socket, head: dict[str, Any], body: bytes) -> None:
    head_bytes = json.dumps(head).encode()
    connection.sendall(_LENGTHS.pack(len(head_bytes), len(body)) + head_bytes + body)


def _receive(connection: socket.socket, body_max: int) -> tuple[dict[str, Any], bytes]:
    head_length, body_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    if head_length > HEAD_MAX_BYTES or body_length > body_max + 1:
        raise ValueError("too long")
    head = json.loads(_exactly(connection, head_length))
    return head, _exactly(connection, body_length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        piece = connection.recv(min(length - len(content), 1024 * 1024))
        if not piece:
            raise ConnectionError("the connection was closed")
        content += piece
    return bytes(content)
