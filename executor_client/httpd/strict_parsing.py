"""Strict HTTP/1.1 framing for waitress: a request that two parsers could delimit differently is answered 400.

A proxy in front that reads such a request in another way would take part of its body for the next request
(request smuggling). waitress 3.0 accepts some of them. Source: RFC 9112, sections 2.2, 3.2, 5.2, 6.1 and 7.1.
"""

import re
from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest

#: longest line of a chunked body: sizes with their extensions, trailer fields
CHUNK_LINE_MAX_BYTES = 4_096
#: longest Content-Length: Python reads no number of more than 4,300 digits
LENGTH_MAX_DIGITS = 16
#: chunks of any size in a body; more must have CHUNK_MIN_BYTES on average, because each takes time in the
#: thread that reads from all connections
SMALL_CHUNKS_MAX = 1_000
CHUNK_MIN_BYTES = 64
#: most trailer fields of a chunked body
TRAILER_MAX_FIELDS = 50

_BARE_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")
#: ``1a;name=value``
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER_FIELD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*")


class StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """Parser of one request; an error it finds is answered 400, and the connection is closed."""

    body_rcv: Any = None
    chunked: bool = False
    empty: bool = False

    def received(self, data: bytes) -> int:
        """Parse the next bytes and return how many belong to this request."""
        if self.error is not None:
            return len(data)
        is_head, before = self.body_rcv is None, self.header_plus[-1:].strip(b"\n")
        length = int(super().received(data))
        if is_head and self.error is None and _BARE_LINE_END.search(before + data[:length]):
            self.refuse("Bare CR or LF in the head")  # at once: its end might never come
        if self.empty:
            self.empty = False
            self.refuse("Start line is missing")
        if self.completed:
            # waitress would send 100 Continue, and take the next bytes for a part of this request.
            self.expect_continue = False
        return length

    def parse_header(self, header_plus: bytes) -> None:
        """Parse start line and header fields; raise ParsingError."""
        check_framing(header_plus)
        super().parse_header(header_plus)
        if self.chunked:
            self.body_rcv = StrictChunks(self.body_rcv.getbuf())

    def refuse(self, text: str) -> None:
        """Answer 400 and close the connection."""
        self.error = BadRequest(text)
        self.completed = True


def check_framing(head: bytes) -> None:
    """Raise ParsingError for a head whose body length or host is ambiguous, and for folded fields."""
    start_line, _, fields = head.partition(b"\r\n")
    values: dict[bytes, list[bytes]] = {b"host": [], b"content-length": [], b"transfer-encoding": []}
    for line in fields.split(b"\r\n"):
        if line.startswith((b" ", b"\t")):
            raise ParsingError("A header field is folded")
        name, _, value = line.partition(b":")
        values.get(name.lower(), []).append(value.strip(b" \t"))
    is_1_1 = start_line.rstrip().endswith(b" HTTP/1.1")
    if len(values[b"host"]) > 1 or (is_1_1 and not values[b"host"]):
        raise ParsingError("Exactly one Host is expected")
    lengths, codings = values[b"content-length"], values[b"transfer-encoding"]
    if len(lengths) > 1:
        raise ParsingError("Content-Length is repeated")
    if lengths and len(lengths[0]) > LENGTH_MAX_DIGITS:
        raise ParsingError("Content-Length is too long")
    if not codings:
        return
    if lengths:
        raise ParsingError("Content-Length and Transfer-Encoding are both given")
    if [coding.lower() for coding in codings] != [b"chunked"]:
        raise ParsingError("Transfer-Encoding is not chunked")
    if not is_1_1:
        raise ParsingError("Transfer-Encoding is not known before version 1.1")


class StrictChunks(ChunkedReceiver):  # type: ignore[misc]
    """Receiver of a chunked body; each line must end with CR LF and is limited in length."""

    def __init__(self, buffer: object) -> None:
        super().__init__(buffer)
        self._line = b""
        self._chunk_remaining = 0
        self._size = 0
        self._chunks = 0
        self._fields = 0
        self._read_line = self._read_size

    def received(self, data: bytes) -> int:
        """Decode the next bytes and return how many belong to this body."""
        at = 0
        while at < len(data) and not self.completed:
            if self._chunk_remaining:
                piece = data[at : at + self._chunk_remaining]
                self.buf.append(piece)
                self._chunk_remaining -= len(piece)
                at += len(piece)
            else:
                end = data.find(b"\n", at) + 1 or len(data)
                self._line += data[at:end]
                at = end
                self._check_line()
        return at

    def _check_line(self) -> None:
        """Read the line if it is complete."""
        line = self._line.removesuffix(b"\r\n")
        if len(line) > CHUNK_LINE_MAX_BYTES or _BARE_LINE_END.search(self._line):
            self._fail("A line of the chunked body is too long or does not end with CR LF")
        elif line != self._line:
            self._line = b""
            self._read_line(line)

    def _read_size(self, line: bytes) -> None:
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            self._fail("Invalid chunk size")
            return
        self._chunk_remaining = int(match[1], 16)
        self._size += self._chunk_remaining
        self._chunks += 1
        if self._chunks > SMALL_CHUNKS_MAX + self._size // CHUNK_MIN_BYTES:
            self._fail("Chunks are too small")
            return
        self._read_line = self._read_end_of_chunk if self._chunk_remaining else self._read_trailer

    def _read_end_of_chunk(self, line: bytes) -> None:
        self._read_line = self._read_size
        if line:
            self._fail("Chunk not properly terminated")

    def _read_trailer(self, line: bytes) -> None:
        """Ignore trailer fields; an empty line ends the body."""
        self._fields += 1
        if not line:
            self.completed = True
        elif self._fields > TRAILER_MAX_FIELDS or not _TRAILER_FIELD.fullmatch(line):
            self._fail("Invalid trailer")

    def _fail(self, text: str) -> None:
        self.error = BadRequest(text)
        self.completed = True
