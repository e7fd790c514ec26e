"""One HTTP/1.1 connection to an executor, for dispatch: a request out in one write, its answer in.

An asyncio protocol around httptools (llhttp, Node's parser): a call costs a quarter of the CPU of a whole HTTP client library,
which is what decides how long a herd of runs takes. Never repeats anything.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from app.domain.trace_templates import CLOSED
from app.executors.calls import REPLY_MAX
from executor_client.protocol import CAPABILITIES_HEADER

#: longest head of an answer, and longest stretch of it that is no body: sizes of chunks, what follows the last
HEAD_MAX = 64 * 1024
_CAPABILITIES = CAPABILITIES_HEADER.lower().encode()
_FIRST_FINAL_STATUS = 200


class Broken(Exception):
    """No whole answer came, whatever the executor has got of the request; the text says why."""


class Answer(NamedTuple):
    """An answer, its body cut at REPLY_MAX; ``capabilities`` is that header's text."""

    status: int
    content: bytes
    capabilities: str


class Connection(asyncio.Protocol):
    """Carries one exchange at a time; ``when_lost`` is told once when it has ended."""

    def __init__(self, when_lost: Callable[["Connection"], None]) -> None:
        self._when_lost = when_lost
        self._answer: asyncio.Future[Answer] | None = None
        self._parser = HttpResponseParser(self)
        # servers written by hand: colons without care, line feeds alone
        self._parser.set_dangerous_leniencies(lenient_headers=True, lenient_optional_cr_before_lf=True)
        self._transport: asyncio.Transport
        self._clear()
        #: whether another exchange may follow
        self.usable = False
        #: loop time at which the last answer was whole
        self.idle_since = 0.0

    def _clear(self) -> None:
        self._bodiless_bytes = 0
        self._in_body = False
        self._until_end = True
        self._parts: list[bytes] = []
        self._body_bytes = 0
        self._capabilities = b""

    async def exchange(self, request: bytes, deadline: float) -> Answer:
        """Send a request and return its answer; by the loop's clock no later than ``deadline``.

        Raises Broken, TimeoutError and OSError: the executor may have got the request, also where it was cut.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._answer = answer
        timer = loop.call_at(deadline, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            return await answer
        except BaseException:  # what may still come on it belongs to nobody
            self.close()
            raise
        finally:
            timer.cancel()
            self._answer = None

    def close(self) -> None:
        """End the connection at once, unsent bytes and all."""
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
        self._when_lost(self)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():  # an answer nobody asked for
            self.close()
            return
        self._bodiless_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as exc:
            self._fail(Broken(f"the answer is no HTTP: {exc}"))
            self.usable = False
        if self._bodiless_bytes > HEAD_MAX:  # at once: the parser joins a long value piece by piece
            self._fail(Broken(f"the head of the answer is longer than {HEAD_MAX} bytes"))
            self.close()

    def on_message_begin(self) -> None:
        """Notice an answer behind the answer: it must not become the next call's."""
        if self._answer is None or self._answer.done():
            self.usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take note of the few headers that matter; called by the parser."""
        if self._in_body:  # of a chunked body's end
            return
        lowered = name.lower()
        if lowered == b"content-length" or (
            lowered == b"transfer-encoding" and value.lower().endswith(b"chunked")
        ):
            self._until_end = False
        elif lowered == _CAPABILITIES:
            self._capabilities = value

    def on_headers_complete(self) -> None:
        """Begin with the body."""
        self._in_body = self._parser.get_status_code() >= _FIRST_FINAL_STATUS
        self._until_end = self._until_end or not self._in_body

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body; what is too long is cut, and the connection with it."""
        self._bodiless_bytes = 0
        self._parts.append(part)
        self._body_bytes += len(part)
        if self._body_bytes > REPLY_MAX:
            self._finish()
            self.close()

    def on_message_complete(self) -> None:
        """Hand over the answer, unless it is one of those that announce another."""
        if self._in_body:
            self.usable = self.usable and self._parser.should_keep_alive()
            self._finish()

    def _finish(self) -> None:
        content = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        answer = Answer(
            self._parser.get_status_code(), content[:REPLY_MAX], self._capabilities.decode("latin-1")
        )
        self._clear()
        self.idle_since = asyncio.get_running_loop().time()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
