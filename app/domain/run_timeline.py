"""Which jobs a timeline of runs shows, how many runs of each, and on which line a run is drawn."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.clock import Millis


class Activity(NamedTuple):
    """What is known of one job within the time shown; thousands are made for one page."""

    job_id: int
    runs: int
    #: runs that failed or are unresolved, and instants that were missed
    troubles: int


def most_telling(activities: Iterable[Activity], *, limit: int) -> list[int]:
    """Return the ids of the jobs to show: those with most trouble first, then those with most runs."""
    ranked = sorted(activities, key=lambda each: (-each.troubles, -each.runs, each.job_id))
    return [each.job_id for each in ranked[:limit]]


def fair_share(counts: Iterable[int], *, total: int) -> int:
    """Return how many runs each job may show so that all show at most ``total``; what few-run jobs leave, the others get."""
    ascending = sorted(counts)
    left = total
    for number, count in enumerate(ascending):
        share = left // (len(ascending) - number)
        if count > share:
            return share
        left -= count
    return ascending[-1] if ascending else 0


def stacked(spans: Sequence[tuple[Millis, Millis]], *, lines: int) -> list[int]:
    """Return the line, from 0, of each span, given by begin ascending: spans that overlap get lines of their own while there are any."""
    ends: list[Millis] = []
    placed = []
    for begin, end in spans:
        line = next((number for number, taken_until in enumerate(ends) if taken_until <= begin), len(ends))
        if line >= lines:
            line = min(range(lines), key=ends.__getitem__)
        if line == len(ends):
            ends.append(end)
        ends[line] = max(ends[line], end)
        placed.append(line)
    return placed
