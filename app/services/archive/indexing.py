"""Index of archived logs: puts logs of ended runs into segments, some hundred at a time.

The rows name the segment of each log; a log without one is searched itself, and so are those of a segment
that is gone. So an index that is behind, or was deleted, costs time and hides nothing.
"""

import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.blobs.blob_store import BlobStore, NoBlob, StoreFull
from app.clock import HOUR_MS, MINUTE_MS, Clock, Millis
from app.database.engine import read_scope, transact
from app.domain.archive.chunks import Chunk, parse_chunks
from app.domain.archive.packing import unpack_text
from app.domain.archive.segments import TEXTS_MAX, Part, build_segment
from app.domain.archive.trigrams import slots_of
from app.services.archive.keeping import is_own
from app.store.archive import segments
from app.store.archive.segments import EndedLog

logger = logging.getLogger(__name__)

#: folder of the index in the archive
FOLDER: Final = "index"
SUFFIX: Final = ".seg"
#: bits of the number of a segment behind the time at which it was made
NUMBER_BITS: Final = 12
#: larger than the id of any run
LAST_ID: Final = 2**63 - 1
#: a segment is made of so many bytes of text, or TEXTS_MAX texts, or logs
BYTES_MAX: Final = 32 * 1024 * 1024
LOGS_MAX: Final = 4_096
#: bytes of the lines of a run that are one text; a chunk that has more is one
PART_MAX: Final = 256 * 1024
#: period of the look for logs without a segment, and pause after one was made
LOOK_MS: Final[Millis] = 15_000
PAUSE_MS: Final[Millis] = 250
#: pause after a failure of the archive
FAILED_MS: Final[Millis] = MINUTE_MS
#: segments are cleaned up, if they are so old
UNUSED_MS: Final[Millis] = HOUR_MS
CLEAN_MS: Final[Millis] = HOUR_MS


def name_of(segment: int) -> str:
    """Return the name of the object of a segment."""
    return f"{FOLDER}/{segment}{SUFFIX}"


@dataclass(slots=True)
class Indexer:
    """Makes segments, and deletes those that no row names any more. Belongs to one thread."""

    store: BlobStore
    clock: Clock
    cleaned_ms: Millis = 0

    def tick(self, at_ms: Millis) -> Millis:
        """Make a segment if there is enough for one; return the wait until the next look."""
        try:
            if at_ms - self.cleaned_ms >= CLEAN_MS:
                self.cleaned_ms = at_ms
                self.clean(at_ms)
            return PAUSE_MS if self.build() else LOOK_MS
        except (OSError, StoreFull) as exc:
            logger.warning("log index not written reason=%s", exc)
            return FAILED_MS

    def build(self) -> bool:
        """Make a segment of the oldest logs that have none; return False if they are too few for one."""
        with read_scope() as session:
            logs = segments.find_unindexed(session, limit=LOGS_MAX)
        members, parts = _choose(logs)
        if not members:
            return False
        number = (self.clock() << NUMBER_BITS) + random.randrange(1 << NUMBER_BITS)
        slots = [self._slots(log, chunks) for log, _, chunks in parts]
        self.store.put(name_of(number), build_segment([part for _, part, _ in parts], slots))
        if not transact(partial(segments.set_segment, logs=members, segment=number)):
            self.store.delete([name_of(number)])  # Another node was faster.
        return True

    def _slots(self, log: EndedLog, chunks: Sequence[Chunk]) -> set[int] | None:
        """Return the slots of a part of a log; None: it cannot be read, as the file is on another node."""
        texts = list[str]()
        for chunk in chunks:
            try:
                texts.append(unpack_text(chunk, self.store.get(chunk.path_in(log.folder))))
            except (NoBlob, ValueError) as exc:
                logger.info("chunk not indexed name=%s reason=%r", chunk.name, exc)
                return None
        return slots_of("\n".join(texts))

    def clean(self, at_ms: Millis) -> int:
        """Delete segments that no row names, and have logs indexed again whose segment is gone.

        Returns how many segments that were. Young ones are left alone: their rows or files may be to come.
        """
        files = {number: blob for blob in self.store.list(FOLDER) if (number := _number_of(blob.name))}
        with read_scope() as session:
            used = {
                segment.number
                for segment in segments.list_segments(session, last_id=LAST_ID)
                if segment.number
            }
        old_ms = at_ms - UNUSED_MS
        orphans = [
            blob.name for number, blob in files.items() if number not in used and blob.written_ms < old_ms
        ]
        missing_numbers = [number for number in used - files.keys() if number >> NUMBER_BITS < old_ms]
        if not (orphans and is_own(self.store)):
            orphans = []
        self.store.delete(orphans)
        for number in missing_numbers:
            transact(partial(segments.forget_segment, segment=number))
            logger.warning("segment of the log index lost number=%s", number)
        return len(orphans) + len(missing_numbers)


def _number_of(name: str) -> int:
    """Return the number of the segment of an object; 0: it is none."""
    digits = name.removeprefix(f"{FOLDER}/").removesuffix(SUFFIX)
    return int(digits) if digits.isascii() and digits.isdecimal() and name == name_of(int(digits)) else 0


def _choose(logs: Sequence[EndedLog]) -> tuple[list[EndedLog], list[tuple[EndedLog, Part, list[Chunk]]]]:
    """Return the logs of the next segment and their texts; none if they do not fill one."""
    members, parts, size = list[EndedLog](), list[tuple[EndedLog, Part, list[Chunk]]](), 0
    for log in logs:
        chunks = parse_chunks(log.chunks or "")
        own = [(log, Part(log.log_id, part[0].first, part[-1].last), part) for part in _parts(chunks)]
        if members and len(parts) + len(own) > TEXTS_MAX:
            return members, parts
        members.append(log)
        parts += own
        size += sum(chunk.size for chunk in chunks)
        if size >= BYTES_MAX or len(parts) >= TEXTS_MAX or len(members) == LOGS_MAX:
            return members, parts
    return [], []


def _parts(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Yield the chunks of a log in parts of about PART_MAX bytes."""
    part, size = list[Chunk](), 0
    for chunk in chunks:
        if part and size + chunk.size > PART_MAX:
            yield part
            part, size = [], 0
        part.append(chunk)
        size += chunk.size
    if part:
        yield part
