"""Archived log of a run as readers see it: lines from the files of the archive, and what is missing.

Lines keep their numbers; those that were not kept leave a gap, behind which reading goes on. What stands
behind the last archived line is read from the executor (`app/services/runs/log_sources.py`).
"""

import logging
from dataclasses import dataclass
from typing import NamedTuple, Self

from sqlalchemy.orm import Session

from app.blobs.blob_store import NoBlob
from app.blobs.stores import Archive
from app.domain.archive.chunks import Chunk, parse_chunks
from app.domain.archive.kinds import FINAL, ArchiveState, Missing
from app.domain.archive.missing import MissingLines, missing_lines
from app.domain.archive.packing import unpack_lines
from app.models.base import local_datetime
from app.store.archive import rows
from app.store.archive.rows import ArchivedLog

logger = logging.getLogger(__name__)

#: bytes of text from which on no further chunk is added to a piece
PIECE_BYTES = 256 * 1024
#: characters of a piece, unless its first line has more
PIECE_MAX = 512 * 1024


class ArchivedLines(NamedTuple):
    """Consecutive lines; if ``last`` is below ``first`` the archive has none from there on."""

    first: int
    last: int
    lines: list[str]
    #: lines that were asked for and cannot be had, before these ones
    missing: tuple[MissingLines, ...] = ()

    @property
    def unreadable(self) -> MissingLines | None:
        """The first of the lines that are archived and cannot be read; None: all can be."""
        return next((part for part in self.missing if part.reason is Missing.UNREADABLE), None)


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """Archived log of a run."""

    row: ArchivedLog
    chunks: tuple[Chunk, ...]
    archive: Archive

    @classmethod
    def find(cls, session: Session, log_id: int, archive: Archive | None) -> Self | None:
        """Return the archived log of a run; None: nothing is known of it."""
        row = rows.find_of_logs(session, [log_id]).get(log_id) if archive is not None else None
        if row is None or archive is None:
            return None
        try:
            return cls(row, parse_chunks(row.chunks or ""), archive)
        except ValueError:
            logger.warning("archived log invalid log_id=%s", log_id)
            return None

    @property
    def last_line(self) -> int:
        """Last line that is not left to the executor; 0: none."""
        return self.row.last_line if self.chunks else 0

    @property
    def has_lines(self) -> bool:
        """Whether there is more to say than the executor does: lines, or that it will have none."""
        return bool(self.chunks) or self.is_final

    @property
    def is_final(self) -> bool:
        """Whether the archiver fetches nothing more."""
        return self.row.state in FINAL

    @property
    def has_tail(self) -> bool:
        """Whether the log is known to end with the last archived line."""
        is_whole = self.row.state == ArchiveState.COMPLETE
        return is_whole or (self.row.state == ArchiveState.PARTIAL and self.row.reason == Missing.RUN_CAP)

    @property
    def gap(self) -> MissingLines | None:
        """Lines that were not kept as the log is too long; None: all were."""
        if not (self.row.gap_from and self.chunks):
            return None
        return self._missing(self.row.gap_from, self.row.gap_to, Missing.RUN_CAP)

    @property
    def tail(self) -> MissingLines | None:
        """Lines behind the archived ones, if the executor has none of them; None: nothing is missing."""
        if self.has_tail or not self.is_final:
            return None
        if self.row.state == ArchiveState.PURGED:
            is_old = self.row.reason == Missing.EXPIRED
            return self._missing(1, 0, Missing.EXPIRED if is_old else Missing.PURGED)
        reason = Missing(self.row.reason) if self.row.reason in list(Missing) else Missing.INSTANCE_GONE
        return self._missing(self.last_line + 1, 0, reason)

    def _missing(self, first: int, last: int, reason: Missing) -> MissingLines:
        pull_time = f"{local_datetime(self.row.pulled_ms):%Y-%m-%d %H:%M:%S}" if self.row.pulled_ms else ""
        return missing_lines(first, last, reason, caps=self.archive.caps, pull_time=pull_time)

    def read(self, first: int, last: int = 0) -> ArchivedLines:
        """Return lines from ``first`` on, or from the end of the gap in which it is; in pieces.

        ``last``: no line behind it; 0: any. Opens no transaction.
        """
        missing: tuple[MissingLines, ...] = ()
        lines, start, size = list[str](), first, 0
        gap = self.gap
        for chunk in self.chunks:
            if chunk.last < start or (last and chunk.first > last):
                continue
            position = start + len(lines)
            if chunk.first > position:
                if lines:
                    break
                start = chunk.first
                missing += (gap,) if gap is not None else ()
            texts = self._texts(chunk)
            if texts is None:
                if lines:
                    break
                missing = self._also(missing, chunk)
                start = chunk.last + 1
                continue
            lines += texts[max(start + len(lines) - chunk.first, 0) :]
            size += chunk.size
            if size >= PIECE_BYTES:
                break
        lines = _cut(lines[: last - start + 1] if last else lines)
        return ArchivedLines(start, start + len(lines) - 1, lines, missing)

    def read_end(self, first: int, count: int) -> ArchivedLines:
        """Return the last lines, at most ``count``, none before ``first``, and none before a gap."""
        lines, position = list[str](), self.last_line + 1
        missing: tuple[MissingLines, ...] = ()
        for chunk in reversed(self.chunks):
            if chunk.last != position - 1 or chunk.last < first or len(lines) >= count:
                break
            texts = self._texts(chunk)
            if texts is None:
                missing = (self._missing(chunk.first, chunk.last, Missing.UNREADABLE),)
                break
            lines, position = texts + lines, chunk.first
        length = min(count, self.last_line - max(first, position) + 1)
        lines = lines[len(lines) - length :] if length > 0 else []
        return ArchivedLines(self.last_line - len(lines) + 1, self.last_line, lines, missing)

    def _also(self, missing: tuple[MissingLines, ...], chunk: Chunk) -> tuple[MissingLines, ...]:
        """Return missing lines with those of a chunk that cannot be read, which may go on the last ones."""
        first = chunk.first
        if missing and missing[-1].reason is Missing.UNREADABLE and missing[-1].last + 1 == first:
            first, missing = missing[-1].first, missing[:-1]
        return (*missing, self._missing(first, chunk.last, Missing.UNREADABLE))

    def _texts(self, chunk: Chunk) -> list[str] | None:
        """Return the lines of a chunk; None: they cannot be read."""
        try:
            content = self.archive.blobs.get(chunk.path_in(self.row.folder))
            return unpack_lines(chunk, content)
        except (NoBlob, ValueError, OSError) as exc:
            logger.warning('archived log unreadable log_id=%s reason="%s"', self.row.log_id, exc)
            return None


def _cut(lines: list[str]) -> list[str]:
    """Return the lines that fit into a piece, at least one."""
    size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size > PIECE_MAX and index:
            return lines[:index]
    return lines
