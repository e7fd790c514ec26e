"""Candidates of a search: runs whose logs may match, by the index, from the newest on.

Segments are opened only when a search has come to their newest run, so that first hits read few of them.
"""

import heapq
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from app.blobs.blob_store import BlobStore, NoBlob
from app.database.engine import read_scope
from app.domain.archive.segments import Part, Segment
from app.domain.archive.trigrams import Need
from app.services.archive.indexing import name_of
from app.store.archive import segments
from app.store.runs.listing import LogFilter

logger = logging.getLogger(__name__)

#: ids of runs that are read at once
IDS: Final = 1_000


class Candidate(NamedTuple):
    """Run whose log may match."""

    log_id: int
    #: segment that its row named
    segment: int
    #: lines among which matches are; empty: any
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """The index, as one search reads it."""

    store: BlobStore
    need: Need

    def candidates(
        self, runs: LogFilter, group_ids: Collection[int] | None, *, last_id: int
    ) -> Iterator[Candidate | int]:
        """Yield the runs up to one that may match, newest first.

        Before a segment is read, yields the id of the newest run that was not considered.
        """
        groups = group_ids
        if runs.group_id > 0 and runs.job_id <= 0:
            groups = {runs.group_id} if groups is None else {runs.group_id} & {*groups}
        with read_scope() as session:
            pending = segments.list_segments(
                session, last_id=last_id, job_id=max(runs.job_id, 0), group_ids=groups
            )
        pending.reverse()
        heap = list[tuple[int, int, Candidate, Iterator[Candidate]]]()
        while heap or pending:
            while pending and (not heap or pending[-1].newest >= -heap[0][0]):
                yield max(pending[-1].newest, -heap[0][0] if heap else 0)
                _push(heap, self._of_segment(pending.pop().number, last_id))
            if heap:
                *_, candidate, others = heapq.heappop(heap)
                _push(heap, others)
                yield candidate

    def _of_segment(self, number: int, last_id: int) -> Iterator[Candidate]:
        try:
            return iter(self._read(number, last_id))
        except (NoBlob, ValueError) as exc:
            if number:
                logger.info("segment not read number=%s reason=%r", number, exc)
            return _find_unindexed(number, last_id)

    def _read(self, number: int, last_id: int) -> list[Candidate]:
        if not number:
            raise NoBlob(name_of(number))
        segment = Segment(partial(self.store.get_range, name_of(number)))
        bits = segment.select(self.need)
        if not bits:
            return []
        parts = [part for at, part in enumerate(segment.parts()) if bits >> at & 1 and part.log_id <= last_id]
        parts.sort(key=lambda part: (-part.log_id, part.first))
        by_log: Callable[[Part], int] = lambda part: part.log_id  # noqa: E731
        return [Candidate(log_id, number, tuple(own)) for log_id, own in groupby(parts, by_log)]


def _push(heap: list[tuple[int, int, Candidate, Iterator[Candidate]]], others: Iterator[Candidate]) -> None:
    candidate = next(others, None)
    if candidate is not None:
        heapq.heappush(heap, (-candidate.log_id, candidate.segment, candidate, others))


def _find_unindexed(number: int, last_id: int) -> Iterator[Candidate]:
    """Yield all logs of a segment, or those that are in none."""
    while True:
        with read_scope() as session:
            ids = segments.list_log_ids(session, number, last_id=last_id, limit=IDS)
        for log_id in ids:
            yield Candidate(log_id, number, ())
        if len(ids) < IDS:
            return
        last_id = ids[-1] - 1
