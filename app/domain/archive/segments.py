"""Segments: the index of some hundred archived texts in one file, of which a search reads a few kilobytes.

A bit for each slot and text: the rows of a slot are bits of all texts, so that a search reads the rows of its
trigrams only. Rows are compressed in groups, which are read one by one. The file: MARK, number of texts, size
of their list, size of each group, as numbers of four bytes; the list of texts, compressed JSON; the groups.
"""

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from app.domain.archive.trigrams import SLOTS, Need, select

MARK: Final = b"DXL1"
#: rows that are compressed together
ROWS: Final = 64
GROUPS: Final = SLOTS // ROWS
_HEAD: Final = struct.Struct(f"<4sII{GROUPS}I")
HEAD_SIZE: Final = _HEAD.size
#: most texts of a segment: the rows of a group are decompressed for each look-up
TEXTS_MAX: Final = 1_024


class Part(NamedTuple):
    """Consecutive lines of the log of a run, which the index has as one text; both ends inclusive."""

    log_id: int
    first: int
    last: int


def build_segment(parts: Sequence[Part], slots: Sequence[set[int] | None]) -> bytes:
    """Return the segment of texts with these slots; None: not known, so that the text may match anything."""
    width = (len(parts) + 7) // 8
    unknown = sum(1 << number for number, of_text in enumerate(slots) if of_text is None)
    rows = bytearray(unknown.to_bytes(width, "little") * SLOTS)
    for number, of_text in enumerate(slots):
        offset, bit = number >> 3, 1 << (number & 7)
        for slot in of_text or ():
            rows[slot * width + offset] |= bit
    size = ROWS * width
    groups = [zlib.compress(rows[at : at + size], 6) for at in range(0, len(rows), size or 1)] or [
        b""
    ] * GROUPS
    texts = zlib.compress(json.dumps(parts, separators=(",", ":")).encode())
    head = _HEAD.pack(MARK, len(parts), len(texts), *map(len, groups))
    return b"".join((head, texts, *groups))


class Segment:
    """A segment that is read in pieces; ``read`` returns bytes of it from a position on."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """Read the head; raises ValueError if it is none."""
        self._read = read
        head = read(0, HEAD_SIZE)
        if len(head) != HEAD_SIZE or not head.startswith(MARK):
            raise ValueError("no segment")
        _, self.count, self._texts_size, *self._sizes = _HEAD.unpack(head)
        self._width = (self.count + 7) // 8
        self._groups: dict[int, bytes] = {}

    def parts(self) -> list[Part]:
        """Return the texts; raises ValueError if they are damaged."""
        return [Part(*row) for row in json.loads(_decompress(self._read(HEAD_SIZE, self._texts_size)))]

    def select(self, need: Need) -> int:
        """Return the numbers of the texts that may match, as bits; raises ValueError."""
        return select(need, self._row, (1 << self.count) - 1)

    def _row(self, slot: int) -> int:
        number, at = divmod(slot, ROWS)
        if number not in self._groups:
            position = HEAD_SIZE + self._texts_size + sum(self._sizes[:number])
            self._groups[number] = _decompress(self._read(position, self._sizes[number]))
        start = at * self._width
        return int.from_bytes(self._groups[number][start : start + self._width], "little")


def _decompress(content: bytes) -> bytes:
    try:
        return zlib.decompress(content)
    except zlib.error as exc:
        raise ValueError("the segment is damaged") from exc
