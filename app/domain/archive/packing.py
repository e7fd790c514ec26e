"""Packed chunks: lines of a log as they are stored, and back."""

import gzip
import zlib
from collections.abc import Sequence
from io import BytesIO
from typing import Final

from app.domain.archive.chunks import Chunk, checksum_of

#: level of the compression: twice as fast as the default for 5 % more bytes
_LEVEL: Final = 4


def pack_lines(first: int, lines: Sequence[str]) -> tuple[Chunk, bytes]:
    """Return a chunk of lines and what is stored of it."""
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    content = gzip.compress(text, _LEVEL, mtime=0)
    chunk = Chunk(first, first + len(lines) - 1, len(text), len(content), checksum_of(text))
    return chunk, content


def unpack_lines(chunk: Chunk, content: bytes) -> list[str]:
    """Return the lines of a chunk; raises ValueError if they are not what was stored."""
    text = _decompress(chunk, content)
    if checksum_of(text) != chunk.checksum:
        raise ValueError(f"{chunk.name} was changed")
    return text.decode("utf-8", "replace").removesuffix("\n").split("\n")


def unpack_text(chunk: Chunk, content: bytes) -> str:
    """Return the text of a chunk without looking at its checksum; raises ValueError if it cannot be read."""
    return _decompress(chunk, content).decode("utf-8", "replace")


def _decompress(chunk: Chunk, content: bytes) -> bytes:
    """Return what was stored; of a file that was changed not more than of the chunk, however long it is."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as stream:
            text = stream.read(chunk.size + 1)
    except (OSError, EOFError, ValueError, zlib.error) as exc:
        raise ValueError(f"{chunk.name} cannot be read") from exc
    if len(text) != chunk.size:
        raise ValueError(f"{chunk.name} was changed")
    return text
