"""Search of archived logs: lines that have a text or match a regular expression, of the newest runs first.

A search takes a few seconds at most. What it has not searched by then the next one goes on with.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.blobs.blob_store import BlobStore, NoBlob
from app.clock import Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.archive.chunks import Chunk, parse_chunks
from app.domain.archive.packing import unpack_text
from app.domain.archive.segments import Part
from app.domain.runs.outcome import outcome_of
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, TooManyCalls
from app.services.archive.candidates import Candidate, Index
from app.services.archive.matchers import Match, Matcher, open_matcher
from app.services.archive.read_ahead import ReadAhead
from app.store.archive import searching
from app.store.archive.searching import SearchedLog
from app.store.runs.listing import LogFilter

logger = logging.getLogger(__name__)

#: seconds of one search, and how many of them this process makes at the same time
BUDGET_S: Final = 5.0
SEARCHES_MAX: Final = 2
#: seconds that a further search waits for its turn
TURN_S: Final = 2.0
#: longest text to search for, in characters
QUERY_MAX: Final = 500
#: runs of the first and of the largest batch
BATCH_MIN, BATCH_MAX = 10, 200
#: larger than the id of any run
_ABOVE_ALL: Final = 2**63 - 1

_turns = threading.BoundedSemaphore(SEARCHES_MAX)


@dataclass(frozen=True, slots=True)
class LineQuery:
    """What to search for, and in which runs."""

    text: str
    is_regex: bool = False
    ignores_case: bool = False
    runs: LogFilter = LogFilter()


class Hit(NamedTuple):
    """A line that matches."""

    log_id: int
    job_id: int
    group_id: int
    #: when its run started
    started_ms: Millis
    outcome: str
    #: number of the line, from 1
    line: int
    match: Match


class Place(NamedTuple):
    """Where a search goes on: in the log of a run, behind a line."""

    log_id: int = _ABOVE_ALL
    line: int = 0


@dataclass(frozen=True, slots=True)
class HitPage:
    """What a search has found."""

    hits: list[Hit]
    #: where the next one goes on; None: everything is searched
    next: Place | None
    #: start of the run with which that one begins; None: everything is searched
    searched_to_ms: Millis | None


def search_logs(
    query: LineQuery,
    *,
    actor: Actor,
    store: BlobStore,
    limit: int,
    after: Place | None = None,
    budget_s: float = BUDGET_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> HitPage:
    """Search for at most ``limit`` lines in about ``budget_s`` seconds. Opens its own transactions.

    Raises InvalidInput for a text that is none, TooManyCalls, and Conflict if the archive cannot be read.
    """
    _check(query.text)
    if not _turns.acquire(timeout=TURN_S):
        raise TooManyCalls(
            N_("Too many searches of logs at the same time; try again in %(seconds)s s", seconds=5),
            retry_after_s=5,
        )
    try:
        with (
            open_matcher(query.text, is_regex=query.is_regex, ignores_case=query.ignores_case) as matcher,
            ReadAhead(store) as reader,
        ):
            search = _Search(query, actor, store, reader, matcher, monotonic() + budget_s, monotonic)
            return search.run(after or Place(), limit)
    except OSError as exc:
        logger.warning("log archive not readable reason=%s", exc)
        raise Conflict(N_("The log archive cannot be read at present")) from exc
    finally:
        _turns.release()


def _check(text: str) -> None:
    if not text or len(text) > QUERY_MAX:
        raise InvalidInput("q", N_("Enter a text of 1 to %(most)s characters", most=QUERY_MAX))
    if any(ord(character) < 32 and character != "\t" for character in text):
        raise InvalidInput("q", N_("Enter a text of one line"))


@dataclass(frozen=True, slots=True)
class _Search:
    """A search in progress."""

    query: LineQuery
    actor: Actor
    store: BlobStore
    reader: ReadAhead
    matcher: Matcher
    until_s: float
    monotonic: Callable[[], float]

    def run(self, place: Place, limit: int) -> HitPage:
        hits, is_first = list[Hit](), True
        for log in self._logs(place.log_id):
            if isinstance(log, int):
                if not is_first and self.monotonic() >= self.until_s:
                    return _page(hits, Place(log, place.line if log == place.log_id else 0))
                is_first = False
                continue
            for line, match in self._lines(log, place.line if log.row.log_id == place.log_id else 0):
                if match is not None:
                    hits.append(_hit(log.row, line, match))
                if len(hits) == limit or self.monotonic() >= self.until_s:
                    return _page(hits, Place(log.row.log_id, line))
            if self.monotonic() >= self.until_s:
                return _page(hits, Place(log.row.log_id - 1))
        return _page(hits, None)

    def _logs(self, last_id: int) -> Iterator["_Log | int"]:
        """Yield the logs to search, from a run on; ids of runs as ``Index`` does."""
        group_ids = self.actor.group_ids(Right.VIEW)
        with read_scope() as session:
            bounds = searching.find_bounds(session, self.query.runs)
        first_id, last_id = (bounds[0], min(last_id, bounds[1])) if bounds else (0, last_id)
        if self.matcher.need is None:
            yield from self._all_logs(last_id, group_ids)
            return
        batch, size = list[Candidate](), BATCH_MIN
        index = Index(self.store, self.matcher.need)
        for candidate in index.candidates(self.query.runs, group_ids, last_id=last_id):
            if (candidate if isinstance(candidate, int) else candidate.log_id) < first_id:
                break
            if isinstance(candidate, Candidate):
                batch.append(candidate)
            if isinstance(candidate, int) or len(batch) >= size:
                yield from self._choose(batch, group_ids)
                size = min(2 * size, BATCH_MAX) if batch else size
                batch.clear()
            if isinstance(candidate, int):
                yield candidate
        yield from self._choose(batch, group_ids)

    def _all_logs(self, last_id: int, group_ids: frozenset[int] | None) -> Iterator["_Log"]:
        """Yield the logs from a run on, as the index cannot help."""
        size = BATCH_MIN
        while last_id > 0:
            with read_scope() as session:
                rows = searching.find_newest(session, self.query.runs, group_ids, last_id=last_id, limit=size)
            yield from self._expect([_log_of(row) for row in rows])
            if len(rows) < size:
                return
            last_id, size = rows[-1].log_id - 1, min(2 * size, BATCH_MAX)

    def _choose(self, batch: list[Candidate], group_ids: frozenset[int] | None) -> Iterator["_Log"]:
        """Yield the logs of candidates that match the filters."""
        if not batch:
            return
        parts = {(candidate.log_id, candidate.segment): candidate.parts for candidate in batch}
        with read_scope() as session:
            rows = searching.find_among(
                session, self.query.runs, group_ids, log_ids={candidate.log_id for candidate in batch}
            )
        # A row whose segment is another one by now was changed: all of its lines are searched.
        yield from self._expect([_log_of(row, parts.get((row.log_id, row.segment), ())) for row in rows])

    def _expect(self, logs: list["_Log"]) -> list["_Log"]:
        for log in logs:
            self.reader.expect(chunk.path_in(log.row.folder) for chunk in log.chunks if log.may_match(chunk))
        return logs

    def _lines(self, log: "_Log", after: int) -> Iterator[tuple[int, Match | None]]:
        """Yield lines behind one that match, and after each chunk its last line."""
        for chunk in log.chunks:
            if chunk.last <= after or not log.may_match(chunk):
                continue
            text = self._text(log.row.folder, chunk)
            for match in self.matcher.find(text, max(after + 1 - chunk.first, 0)):
                yield chunk.first + match.line, match
            yield chunk.last, None

    def _text(self, folder: str, chunk: Chunk) -> str:
        """Return the text of a chunk; empty if it was deleted meanwhile or is damaged."""
        try:
            return unpack_text(chunk, self.reader.get(chunk.path_in(folder))).removesuffix("\n")
        except (NoBlob, ValueError) as exc:
            logger.info("chunk not searched name=%s reason=%r", chunk.name, exc)
            return ""


class _Log(NamedTuple):
    """A log to search."""

    row: SearchedLog
    chunks: tuple[Chunk, ...]
    #: lines among which matches are; empty: any
    parts: tuple[Part, ...] = ()

    def may_match(self, chunk: Chunk) -> bool:
        """Whether a chunk may have a match."""
        return not self.parts or any(part.first <= chunk.first <= part.last for part in self.parts)


def _log_of(row: SearchedLog, parts: tuple[Part, ...] = ()) -> _Log:
    return _Log(row, parse_chunks(row.chunks), parts)


def _page(hits: list[Hit], place: Place | None) -> HitPage:
    if place is None:
        return HitPage(hits, None, None)
    with read_scope() as session:
        return HitPage(hits, place, searching.find_start(session, place.log_id))


def _hit(log: SearchedLog, line: int, match: Match) -> Hit:
    outcome = outcome_of(log.trigger_code, log.handle_code, log.killed)
    return Hit(log.log_id, log.job_id, log.job_group, log.trigger_time or 0, outcome, line, match)
