"""Suggestions: promises that a job has kept in the last days with room to spare. Pure rules."""

from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from app.clock import DAY_MS, SECOND_MS, Millis
from app.domain.enums import PromiseKind
from app.domain.promises.judgement import USUAL_MIN, UsualRun
from app.domain.promises.promise import Promise

#: days whose successes count
DAYS: Final = 30
#: share of the runs whose duration is the basis, and how many times of it are promised
SHARE: Final = 0.99
TIMES: Final = 2
#: how many usual intervals may pass until the next success: one that is a little late breaks nothing
INTERVALS: Final = 1.5
#: lengths that are suggested, in seconds; a longer one is a number of whole days
_ROUND: Final = (
    *(1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90),
    *(minutes * 60 for minutes in (2, 3, 5, 10, 15, 20, 30, 45, 60, 90)),
    *(hours * 3_600 for hours in (2, 3, 4, 6, 8, 12, 18, 24, 36, 48)),
)


class Suggestion(NamedTuple):
    """A promise, and what it follows from."""

    promise: Promise
    #: duration that so many runs did not exceed, or usual interval of the successes
    basis_ms: Millis


def suggest(newest_first: Sequence[UsualRun], *, has_instants: bool) -> list[Suggestion]:
    """Return the promises for these successes; none if there are too few.

    ``has_instants``: the schedule of the job has times that runs are due at.
    """
    if len(newest_first) < USUAL_MIN:
        return []
    durations = sorted(run.duration_ms for run in newest_first)
    slow_ms = max(SECOND_MS, durations[ceil(SHARE * len(durations)) - 1])
    kinds = [PromiseKind.TAKES_AT_MOST, *([PromiseKind.FINISHES_WITHIN] if has_instants else [])]
    suggestions = [Suggestion(Promise(kind, s=round_up(TIMES * slow_ms)), slow_ms) for kind in kinds]
    usual_ms = usual_interval(newest_first)
    if usual_ms:
        every = Promise(PromiseKind.SUCCEEDS_EVERY, s=round_up(int(INTERVALS * usual_ms)))
        suggestions.append(Suggestion(every, usual_ms))
    return suggestions


def usual_interval(newest_first: Sequence[UsualRun]) -> Millis:
    """Return the median of the times between the beginnings of successes; 0: all began at once."""
    begins = sorted(run.began_ms for run in newest_first)
    gaps = [later - earlier for earlier, later in zip(begins, begins[1:], strict=False)]
    return round(median(gaps)) if gaps else 0


def round_up(ms: Millis) -> int:
    """Return the next round length, in seconds."""
    seconds = ceil(ms / SECOND_MS)
    days = ceil(ms / DAY_MS) * (DAY_MS // SECOND_MS)
    return next((length for length in _ROUND if length >= seconds), days)
