"""Chunks of an archived log: consecutive lines that are stored together, compressed."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from hashlib import sha256
from typing import Final, NamedTuple, Self

from app.clock import Millis

#: hex digits of the checksum in the name of a chunk
DIGITS: Final = 16
SUFFIX: Final = ".gz"
#: name of the object of a chunk, below the archive; its group is the run
CHUNK_NAME: Final = re.compile(
    rf"\d{{4}}/\d{{2}}/\d{{2}}/\d+/(\d{{1,18}})/\d+-\d+-[0-9a-f]{{{DIGITS}}}\{SUFFIX}", re.ASCII
)


class Chunk(NamedTuple):
    """Lines of a log, both ends inclusive."""

    first: int
    last: int
    #: bytes of its text, and of what is stored
    size: int
    stored: int
    #: beginning of the SHA-256 of its text, as hex digits
    checksum: str

    @property
    def name(self) -> str:
        """File name of the chunk, of which the same lines with another text have another."""
        return f"{self.first}-{self.last}-{self.checksum}{SUFFIX}"

    def path_in(self, folder: str) -> str:
        """Return the name of its object, in the folder of its run."""
        return f"{folder}/{self.name}"


def checksum_of(text: bytes) -> str:
    """Return the checksum of the text of a chunk."""
    return sha256(text).hexdigest()[:DIGITS]


def folder_of(job_id: int, log_id: int, logical_ms: Millis, zone: tzinfo) -> str:
    """Return the folder of the chunks of a run, below that of the archive."""
    day = datetime.fromtimestamp(logical_ms / 1000, zone)
    return f"{day:%Y/%m/%d}/{job_id}/{log_id}"


def day_of_folder(folder: str) -> str:
    """Return the day of the folder of a run, such as ``2026/11/30``."""
    return folder[:10]


def dump_chunks(chunks: Iterable[Chunk]) -> str:
    """Return chunks as they are stored in the row of their run."""
    return json.dumps([[*chunk] for chunk in chunks], separators=(",", ":"))


def parse_chunks(text: str) -> tuple[Chunk, ...]:
    """Return the chunks that a row names; ValueError for a text that is none."""
    rows = json.loads(text or "[]")
    try:
        return tuple(
            Chunk(int(a), int(b), int(size), int(packed_size), str(e)) for a, b, size, packed_size, e in rows
        )
    except (TypeError, ValueError) as exc:
        raise ValueError("no list of chunks") from exc


class Window(NamedTuple):
    """Chunks that are kept of a log that is longer than may be kept: its head and its tail."""

    chunks: tuple[Chunk, ...]
    #: chunks between them that are given up
    gap_chunks: tuple[Chunk, ...]
    #: lines between head and tail that are not kept, both ends inclusive; 0, 0: all are
    gap_from: int = 0
    gap_to: int = 0

    @classmethod
    def of(cls, chunks: Sequence[Chunk], *, most: int, gap: tuple[int, int] = (0, 0)) -> Self:
        """Return what is kept of ``chunks``, ascending, whose texts may have ``most`` bytes.

        The first half of that is the head, the rest follows the tail. ``gap``: lines that are left out by
        now, which lie between two of the chunks.
        """
        gap_from, gap_to = gap
        if sum(chunk.size for chunk in chunks) <= most:
            return cls((*chunks,), (), gap_from, gap_to)
        head_count, size = 0, 0
        if gap_from:
            head_count = sum(chunk.last < gap_from for chunk in chunks)
            size = sum(chunk.size for chunk in chunks[:head_count])
        else:
            for chunk in chunks:
                if size + chunk.size > most // 2:
                    break
                head_count, size = head_count + 1, size + chunk.size
        left = most - size
        tail_count = 0
        for chunk in reversed(chunks[head_count:]):
            if chunk.size > left and tail_count:
                break
            tail_count, left = tail_count + 1, left - chunk.size
        tail_from = len(chunks) - tail_count
        gap_chunks = (*chunks[head_count:tail_from],)
        if gap_chunks:
            gap_from = gap_from or gap_chunks[0].first
            gap_to = gap_chunks[-1].last
        return cls((*chunks[:head_count], *chunks[tail_from:]), gap_chunks, gap_from, gap_to)
