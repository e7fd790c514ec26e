"""Small chunks: those of a log that grows line by line are put together.

Without that, a run that logs a line a second has 86,400 files a day, and each pull writes all their names.
"""

import logging
from collections.abc import Sequence
from typing import Final

from app.blobs.blob_store import BlobStore, NoBlob
from app.domain.archive.chunks import Chunk
from app.domain.archive.packing import unpack_lines

logger = logging.getLogger(__name__)

#: so many small chunks at the end of a log become one
COUNT: Final = 16
#: a chunk is small if it has less than this share of what is kept of a run, and than so many bytes
SHARE: Final = 256
SIZE_MAX: Final = 256 * 1024


def small_end(
    store: BlobStore, folder: str, chunks: Sequence[Chunk], *, run_max: int
) -> tuple[list[Chunk], list[str]]:
    """Return the small chunks at the end of a log and their lines if there are enough to put together.

    One that cannot be read, and those before it, stay as they are.
    """
    most = min(run_max // SHARE, SIZE_MAX)
    small, lines = list[Chunk](), list[str]()
    if len(chunks) < COUNT or any(chunk.size >= most for chunk in chunks[-COUNT:]):
        return [], []
    for chunk in reversed(chunks):
        if chunk.size >= most or (small and chunk.last + 1 != small[0].first):
            break
        try:
            texts = unpack_lines(chunk, store.get(chunk.path_in(folder)))
        except (NoBlob, ValueError, OSError) as exc:
            logger.info("chunk not put together name=%s reason=%r", chunk.name, exc)
            break
        small, lines = [chunk, *small], [*texts, *lines]
    return (small, lines) if len(small) >= COUNT else ([], [])
