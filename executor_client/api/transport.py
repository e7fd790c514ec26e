"""Transport of API v1: requests, answers, and the protocol of transports."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

from executor_client.api.errors import NotUnicode

#: path of the API below the address of the console
BASE_PATH = "/api/v1"
#: timeout of an answer in seconds, plus the time for which the request lets the console wait
ANSWER_S = 30.0

Query = Mapping[str, "str | int | float | bool | list[str] | list[int] | None"]


@dataclass(frozen=True)
class Request:
    """One request; ``path`` is below the API's base path: ``/jobs/7``."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    #: a JSON value; None: no body
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: seconds until the answer begins, and between two of its pieces
    timeout_s: float = ANSWER_S
    #: whether it may be sent again when the connection breaks; a write then has an idempotency key
    is_repeatable: bool = True

    def encoded_query(self) -> str:
        """Return the query without the values that are None; lists repeat their name. Raises NotUnicode."""
        pairs = [(name, _text(value)) for name, value in self.query.items() if value is not None]
        try:
            return urlencode(pairs, doseq=True)
        except UnicodeEncodeError as exc:
            raise NotUnicode(exc.object) from exc

    def encoded_body(self) -> bytes | None:
        """Return the body as JSON in UTF-8; None without one. Raises NotUnicode."""
        if self.body is None:
            return None
        try:
            return json.dumps(self.body, ensure_ascii=False).encode()
        except UnicodeEncodeError as exc:
            raise NotUnicode(exc.object) from exc


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


@dataclass
class Answer:
    """One answer; header names are in lower case. Close it, or read it to its end."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]
    close: Callable[[], None]

    def read(self) -> bytes:
        """Return the whole body."""
        try:
            return b"".join(self.pieces)
        finally:
            self.close()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the body as they arrive."""
        buffer = b""
        try:
            for piece in self.pieces:
                *complete, buffer = (buffer + piece).split(b"\n")
                yield from complete
            if buffer:
                yield buffer
        finally:
            self.close()


class Transport(Protocol):
    """Sends requests to one console."""

    #: address of the console, for messages
    address: str

    def send(self, request: Request) -> Answer:
        """Send a request; raise ApiUnreachable without an answer."""

    def close(self) -> None:
        """Close the connections."""
