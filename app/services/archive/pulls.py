"""Pull of the log of one run: reads new lines from its executor, stores them as a chunk, and notes it.

The chunk is stored before the row that names it is written, and that only if no other node has written the
row since: so no line is there twice and none is missing. A chunk that no row names is deleted later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

from sqlalchemy.orm import Session

from app.blobs.blob_store import BlobStore, StoreFull
from app.clock import MINUTE_MS, Clock, Millis
from app.database.engine import read_scope, transact
from app.domain.archive.chunks import Chunk, Window, dump_chunks, parse_chunks
from app.domain.archive.kinds import PASSING, ArchiveState, Missing
from app.domain.archive.packing import pack_lines
from app.domain.archive.pulls import Progress, PullOutcome, after_pull
from app.domain.enums import HandleCode
from app.domain.runs.evidence import ABSENT_LOGS, refuses_absent
from app.errors import Conflict, ExecutorRefused, ExecutorUnreachable
from app.models.log import JobLog
from app.runtime.metrics import ARCHIVED_BYTES
from app.services.archive.small_chunks import small_end
from app.services.archive.texts import Redaction
from app.services.executors.callers import Caller
from app.services.run_logs.log_pieces import split_lines
from app.services.runs.log_sources import LogSource, open_source, read_source
from app.settings.log_archive import ArchiveConfig
from app.store.archive import room, rows
from app.store.archive.rows import ArchivedLog, FoundRow
from app.store.fires.logs import is_unfinished
from app.store.runs import listing as log_lists

#: pieces of one pull, of at most 512 KiB each
PIECES_MAX = 4
#: a pull fetches about this share of what is kept of a run, or head and tail of it would be one chunk
CHUNK_SHARE = 8
#: pause after a pull whose lines found no room
FULL_PAUSE_MS: Millis = MINUTE_MS
MIB = 1024 * 1024
#: reasons that a pull with an answer ends: the executor is back, a late result came, there is room again
_PASSED = (
    *PASSING,
    Missing.JOB_CAP,
    Missing.INSTANCE_GONE,
    Missing.LOG_GONE,
    Missing.REFUSED,
    Missing.EXPIRED,
    Missing.PURGED,
)


class PullResult(NamedTuple):
    """How a pull went."""

    #: bytes that came, about
    size: int
    #: whether the executor could not be reached
    is_silent: bool
    #: what is to be written; None: nothing
    update: "Update | None" = None


class Update(NamedTuple):
    """What a pull has found; the row does not have it yet."""

    row: FoundRow
    #: names of chunks that the row does not name any more
    old_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Puller:
    """What pulls need."""

    caller: Caller
    store: BlobStore
    redaction: Redaction
    #: bytes of the text of one run
    run_max: int
    clock: Clock
    #: bytes of the texts of the runs of a job on one day
    job_day_max: int = 256 * MIB

    @classmethod
    def of(cls, config: ArchiveConfig, caller: Caller, store: BlobStore, clock: Clock) -> Self:
        """Return what pulls need by the settings of the archive."""
        limits = config.run_mb * MIB, config.job_day_mb * MIB
        return cls(caller, store, Redaction(config.redact), limits[0], clock, limits[1])

    def pull(self, log: ArchivedLog) -> PullResult:
        """Fetch and store what is new of a leased log; ``write`` has to write it.

        Opens its own transactions; raises StoreFull and OSError.
        """
        with read_scope() as session:
            run = log_lists.find_log(session, log.log_id)
            is_kept = run is not None and not (log.is_provisional and run.handle_code == HandleCode.SUCCESS)
            source = self._open(session, run) if run is not None and is_kept else None
            is_full = room.size_of(session, log.key) >= self.job_day_max
        if run is None or not is_kept:
            self._drop(log)
            return PullResult(0, is_silent=False)
        if not log.ended_ms and not is_unfinished(run.trigger_code, run.handle_code):
            log = self._end(log)
        if is_full or source is None:
            failure = Missing.JOB_CAP if is_full else Missing.INSTANCE_GONE
            update = self._store(log, [], PullOutcome(False, failure=failure))
            return PullResult(0, is_silent=False, update=update)
        lines, result = self._read(source, log)
        is_silent = result.failure is Missing.INSTANCE_GONE
        return PullResult(sum(map(len, lines)), is_silent, self._store(log, lines, result))

    def write(self, updates: Sequence[Update]) -> None:
        """Write what pulls have found, in one transaction, and delete the chunks that are not kept."""
        ids = transact(partial(rows.write_pulls, pulls=[update.row for update in updates]))
        names = [name for update in updates if update.row.log.id in ids for name in update.old_names]
        if names:
            self.store.delete(names)

    def _end(self, log: ArchivedLog) -> ArchivedLog:
        """Note the end of a run whose completion has not: its log was archived only while it was open."""
        ended_ms = self.clock()
        if transact(partial(rows.write_end, log=log, ended_ms=ended_ms)):
            return log._replace(state=ArchiveState.ENDING.value, ended_ms=ended_ms)
        return log

    def push(self, log: ArchivedLog, lines: list[str]) -> None:
        """Store lines behind the last one that came without being fetched. Raises StoreFull."""
        self.write([self._store(log, [self.redaction.redact(line) for line in lines], PullOutcome(True))])

    def _open(self, session: Session, run: JobLog) -> LogSource | None:
        try:
            return open_source(session, run, self.caller)
        except (Conflict, ExecutorUnreachable):
            return None

    def _read(self, source: LogSource, log: ArchivedLog) -> tuple[list[str], PullOutcome]:
        """Return new lines, and how the pull went."""
        lines = list[str]()
        for _ in range(PIECES_MAX):
            first = log.last_line + len(lines) + 1
            try:
                piece = read_source(source, first, caller=self.caller)
            except ExecutorUnreachable as exc:
                return lines, PullOutcome(bool(lines), failure=None if lines else _failure_of(exc))
            if piece.to_line_num < first:
                is_absent = piece.log_content.strip() in ABSENT_LOGS and not lines
                return lines, PullOutcome(bool(lines), failure=Missing.LOG_GONE if is_absent else None)
            new = split_lines(piece.log_content)[max(first - piece.from_line_num, 0) :]
            if not new:  # The executor returns other lines than those asked for.
                return lines, PullOutcome(bool(lines))
            lines += [self.redaction.redact(line) for line in new]
            if piece.is_end:
                return lines, PullOutcome(True)
            if sum(map(len, lines)) >= self.run_max // CHUNK_SHARE:  # Head and tail are of whole chunks.
                break
        return lines, PullOutcome(bool(lines), has_more=True)

    def _store(self, log: ArchivedLog, lines: list[str], result: PullOutcome) -> Update:
        now_ms, columns = self.clock(), dict[str, Any]()
        gap_chunks: tuple[Chunk, ...] = ()
        reason = log.reason
        if lines:
            former = parse_chunks(log.chunks or "")
            small, earlier = small_end(self.store, log.folder, former, run_max=self.run_max)
            chunk, content = pack_lines(log.last_line + 1 - len(earlier), [*earlier, *lines])
            try:
                self.store.put(chunk.path_in(log.folder), content)
            except (StoreFull, OSError) as exc:
                missing = Missing.DISK_FULL if isinstance(exc, StoreFull) else Missing.STORE_GONE
                waits: dict[str, Any] = {
                    "state": log.state,
                    "next_ms": now_ms + FULL_PAUSE_MS,
                    "reason": missing.value,
                }
                transact(partial(rows.write_pull, log=log, now_ms=now_ms, **waits))
                raise
            # The files of small chunks stay for readers of the row as it was; the clean-up deletes them.
            chunks = [*former[: len(former) - len(small)], chunk]
            window = Window.of(chunks, most=self.run_max, gap=(log.gap_from, log.gap_to))
            gap_chunks = window.gap_chunks
            reason = Missing.RUN_CAP.value if window.gap_from else reason
            ARCHIVED_BYTES.add(count=chunk.size - sum(part.size for part in small))
            columns |= {
                "last_line": chunk.last,
                "chunks": dump_chunks(window.chunks),
                "size": sum(part.size for part in window.chunks),
                "stored": sum(part.stored for part in window.chunks),
                "gap_from": window.gap_from,
                "gap_to": window.gap_to,
            }
        if reason in _PASSED and result.failure is None:
            reason = Missing.RUN_CAP.value if columns.get("gap_from", log.gap_from) else ""
        progress = Progress(ArchiveState(log.state), log.ended_ms, log.pause_ms, reason)
        following = after_pull(progress, result, at_ms=now_ms)
        columns |= {
            "state": following.state.value,
            "next_ms": following.next_ms,
            "pause_ms": following.pause_ms,
            "reason": following.reason,
        }
        columns |= {} if result.failure is not None else {"pulled_ms": now_ms}
        names = tuple(part.path_in(log.folder) for part in gap_chunks)
        return Update(FoundRow(log, now_ms, columns), names)

    def _drop(self, log: ArchivedLog) -> None:
        """Delete the log of a run that has succeeded and is not kept, or that was deleted."""
        if transact(partial(rows.delete_archive, log=log)):
            chunks = parse_chunks(log.chunks or "")
            self.store.delete([chunk.path_in(log.folder) for chunk in chunks])


def _failure_of(error: ExecutorUnreachable) -> Missing:
    if not isinstance(error, ExecutorRefused):
        return Missing.INSTANCE_GONE
    return Missing.LOG_GONE if refuses_absent(error.reason) else Missing.REFUSED
