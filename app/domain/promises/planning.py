"""Planning of checks: when it is looked whether the instants of a schedule kept a promise."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from app.clock import MINUTE_MS, Millis
from app.domain.promises.promise import Promise, due_ms_of

#: checks are planned so far ahead
AHEAD_MS: Final[Millis] = 10 * MINUTE_MS
#: more instants than that in a minute have one check
COUNTED: Final = 6
#: instants that were due longer ago than that, as of a program that was stopped, have one check
OLD_MS: Final[Millis] = 10 * MINUTE_MS


class PlannedCheck(NamedTuple):
    """A look at instants, both ends inclusive."""

    logical_ms: Millis
    until_ms: Millis
    due_ms: Millis


def checks_of(
    promise: Promise, instants: Iterable[Millis], *, time_zone: str, now_ms: Millis
) -> Iterator[PlannedCheck]:
    """Yield the checks of ascending instants: one each, but one a minute if there are many.

    All old ones have a single check.
    """
    due = ((instant, due_ms_of(promise, instant, time_zone)) for instant in instants)
    for _minute, group in groupby(due, lambda pair: _minute_of(pair[0], pair[1], now_ms)):
        of_minute = [*group]
        if of_minute[-1][1] < now_ms - OLD_MS or len(of_minute) > COUNTED:
            yield PlannedCheck(of_minute[0][0], of_minute[-1][0], of_minute[-1][1])
        else:
            yield from (PlannedCheck(instant, instant, due_ms) for instant, due_ms in of_minute)


def _minute_of(instant: Millis, due_ms: Millis, now_ms: Millis) -> Millis:
    """Return by what instants are put together: their minute, 0 for all old ones."""
    return 0 if due_ms < now_ms - OLD_MS else instant // MINUTE_MS
