"""HTTP/1.1 connection to an executor, for dispatch: one request, one response at a time.

An asyncio protocol around httptools (llhttp, Node's parser): a call costs a quarter of the CPU of a full HTTP
client library, which limits how fast many runs due at once are sent. Never repeats a request.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from app.clock import elapsed_s
from app.domain.runs.trace_templates import CLOSED
from app.executors.calls import REPLY_MAX
from executor_client.wire.protocol import CAPABILITIES_HEADER

#: longest head of a response; also the limit of other data outside the body, such as chunk sizes and trailers
HEAD_MAX = 64 * 1024
_CAPABILITIES = CAPABILITIES_HEADER.lower().encode()
_FIRST_FINAL_STATUS = 200


class Broken(Exception):
    """No complete response arrived; the executor may have received the request. The text is the reason."""


class Answer(NamedTuple):
    """Response, its body cut at REPLY_MAX; ``capabilities`` is the value of that header."""

    status: int
    content: bytes
    capabilities: str


#: receives the response, or why there is none: Broken, TimeoutError or OSError
OnAnswer = Callable[[Answer | Exception], object]


class Connection(asyncio.Protocol):
    """Connection for one exchange at a time; ``on_lost`` is called once when it has ended."""

    def __init__(self, on_lost: Callable[["Connection"], None]) -> None:
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        #: callback of the exchange in progress; None between exchanges
        self._on_answer: OnAnswer | None = None
        self._timer: asyncio.TimerHandle
        self._parser = HttpResponseParser(self)
        # for hand-written servers: sloppy colons in headers, line feeds without carriage return
        self._parser.set_dangerous_leniencies(lenient_headers=True, lenient_optional_cr_before_lf=True)
        self._transport: asyncio.Transport
        self._clear()
        #: whether another exchange may follow
        self.usable = False
        #: loop time at which the last response was complete
        self.idle_since = 0.0

    def _clear(self) -> None:
        self._bodiless_bytes = 0
        self._in_body = False
        self._until_end = True
        self._parts: list[bytes] = []
        self._body_bytes = 0
        self._capabilities = b""

    async def exchange(self, request: bytes, deadline: float) -> Answer:
        """Send a request and return the response, by ``deadline`` of the loop's clock at the latest.

        Raises Broken, TimeoutError and OSError: the executor may have received the request, or a part of it.
        """
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self.start(request, deadline, partial(_resolve, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self._fail(Broken(CLOSED))
            raise

    def start(self, request: bytes, deadline: float, on_answer: OnAnswer) -> None:
        """Send a request; ``on_answer`` is called once with the result, in a later round of the loop."""
        self._on_answer = on_answer
        self._timer = self._loop.call_at(deadline, self._fail, TimeoutError())
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection at once and discard unsent bytes."""
        self.usable = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.usable = True

    def eof_received(self) -> None:
        self.usable = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self._in_body and self._until_end and self._parts and exc is None:
            self._finish()
        self._fail(Broken(CLOSED) if exc is None else exc)
        self._on_lost(self)

    def data_received(self, data: bytes) -> None:
        if self._on_answer is None:  # a response without a request
            self.close()
            return
        self._bodiless_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as exc:
            self._fail(Broken(f"the answer is not HTTP: {exc}"))
            self.usable = False
        if self._bodiless_bytes > HEAD_MAX:  # checked here: the parser joins a long value piece by piece
            self._fail(Broken(f"the head of the answer is longer than {HEAD_MAX} bytes"))
            self.close()

    def on_message_begin(self) -> None:
        """Detect a second response, which must not become that of the next request; called by the parser."""
        if self._on_answer is None:
            self.usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the few headers that matter; called by the parser."""
        if self._in_body:  # trailers of a chunked body are ignored
            return
        key = name.lower()
        if key == b"content-length" or (key == b"transfer-encoding" and value.lower().endswith(b"chunked")):
            self._until_end = False
        elif key == _CAPABILITIES:
            self._capabilities = value

    def on_headers_complete(self) -> None:
        """Start the body; called by the parser."""
        self._in_body = self._parser.get_status_code() >= _FIRST_FINAL_STATUS
        self._until_end = self._until_end or not self._in_body

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body; cut a body that is too long and close the connection."""
        self._bodiless_bytes = 0
        self._parts.append(part)
        self._body_bytes += len(part)
        if self._body_bytes > REPLY_MAX:
            self._finish()
            self.close()

    def on_message_complete(self) -> None:
        """Return the response, unless it is an interim one (1xx); called by the parser."""
        if self._in_body:
            self.usable = self.usable and self._parser.should_keep_alive()
            self._finish()

    def _finish(self) -> None:
        content = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        answer = Answer(
            self._parser.get_status_code(), content[:REPLY_MAX], self._capabilities.decode("latin-1")
        )
        self._clear()
        self.idle_since = elapsed_s()
        self._end(answer)

    def _fail(self, error: Exception) -> None:
        if self._on_answer is not None:
            self._end(error)
            self.close()  # a late response must not be taken for that of another request

    def _end(self, result: Answer | Exception) -> None:
        """Hand the result over once the parser has read what arrived with it."""
        if self._on_answer is not None:
            self._timer.cancel()
            self._loop.call_soon(self._on_answer, result)
            self._on_answer = None


def _resolve(answer: asyncio.Future[Answer], result: Answer | Exception) -> None:
    if answer.done():  # the exchange was cancelled
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
