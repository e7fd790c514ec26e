"""Run timeline: which jobs it shows, how many runs of each, and on which line a run is drawn."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.clock import Millis


class Activity(NamedTuple):
    """Activity of a job within the time shown. A tuple, because a page needs thousands."""

    job_id: int
    runs: int
    #: failed and unresolved runs, and missed instants
    troubles: int


def rank_jobs(activities: Iterable[Activity], *, limit: int) -> list[int]:
    """Return the ids of the jobs to show: most trouble first, then most runs."""
    ranked = sorted(activities, key=lambda each: (-each.troubles, -each.runs, each.job_id))
    return [each.job_id for each in ranked[:limit]]


def fair_share(counts: Iterable[int], *, total: int) -> int:
    """Return how many runs each job may show, so that all together show at most ``total``.

    Jobs with few runs leave their unused share to the others.
    """
    ascending = sorted(counts)
    remaining = total
    for number, count in enumerate(ascending):
        share = remaining // (len(ascending) - number)
        if count > share:
            return share
        remaining -= count
    return ascending[-1] if ascending else 0


def stacked(spans: Sequence[tuple[Millis, Millis]], *, lines: int) -> list[int]:
    """Return the line, from 0, of each span; the spans are sorted by start.

    Overlapping spans get different lines as long as there are enough.
    """
    ends: list[Millis] = []
    placed = []
    for start, end in spans:
        line = next((number for number, line_end in enumerate(ends) if line_end <= start), len(ends))
        if line >= lines:
            line = min(range(lines), key=ends.__getitem__)
        if line == len(ends):
            ends.append(end)
        ends[line] = max(ends[line], end)
        placed.append(line)
    return placed
