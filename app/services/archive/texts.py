"""Texts of archived logs: redaction, and chunks as they are stored."""

import gzip
import re
from collections.abc import Sequence
from typing import Final

from app.domain.archive.chunks import Chunk, checksum_of

#: what stands in place of redacted text
REDACTED: Final = "***"
#: level of the compression: twice as fast as the default for 5 % more bytes
_LEVEL: Final = 4


class Redaction:
    """Replaces what a regular expression matches; with an empty one nothing."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern) if pattern else None

    def redact(self, line: str) -> str:
        """Return a line without what matches."""
        return self._pattern.sub(REDACTED, line) if self._pattern is not None else line


def pack_lines(first: int, lines: Sequence[str]) -> tuple[Chunk, bytes]:
    """Return a chunk of lines and what is stored of it."""
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    stored = gzip.compress(text, _LEVEL, mtime=0)
    chunk = Chunk(first, first + len(lines) - 1, len(text), len(stored), checksum_of(text))
    return chunk, stored


def unpack_lines(chunk: Chunk, stored: bytes) -> list[str]:
    """Return the lines of a chunk; raises ValueError if they are not what was stored."""
    try:
        text = gzip.decompress(stored)
    except (OSError, EOFError, ValueError) as exc:
        raise ValueError(f"{chunk.name} cannot be read") from exc
    if checksum_of(text) != chunk.checksum:
        raise ValueError(f"{chunk.name} was changed")
    return text.decode("utf-8", "replace").removesuffix("\n").split("\n")
