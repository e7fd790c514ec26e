"""Planning of checks: when a promise about the instants of a schedule is evaluated."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.domain.promises.promise import Promise, due_ms_of, longest_delay_ms

#: checks are planned so far ahead
AHEAD_MS: Final[Millis] = 10 * MINUTE_MS
#: instants of a frequent schedule that lie in the same window have one check: a message is so much later
WINDOW_MS: Final[Millis] = 5 * SECOND_MS
#: instants that were due longer ago than that, as of a program that was stopped, have one check
OLD_MS: Final[Millis] = 10 * MINUTE_MS


def old_until_ms(promise: Promise, now_ms: Millis) -> Millis:
    """Return up to which all instants were due longer than OLD_MS ago, so that they need not be listed."""
    return now_ms - OLD_MS - longest_delay_ms(promise) - 1


class PlannedCheck(NamedTuple):
    """Check of the instants from ``logical_ms`` to ``until_ms``, both included."""

    logical_ms: Millis
    until_ms: Millis
    due_ms: Millis


def checks_of(
    promise: Promise, instants: Iterable[Millis], *, time_zone: str, now_ms: Millis
) -> Iterator[PlannedCheck]:
    """Yield the checks of ascending instants: one for each window of them, and one for all old ones."""
    due = ((instant, due_ms_of(promise, instant, time_zone)) for instant in instants)
    for _window, group in groupby(due, lambda pair: _window_of(pair[0], pair[1], now_ms)):
        pairs = [*group]
        yield PlannedCheck(pairs[0][0], pairs[-1][0], pairs[-1][1])


def _window_of(instant: Millis, due_ms: Millis, now_ms: Millis) -> Millis:
    """Return the number of the window of an instant; 0 for all old ones."""
    return 0 if due_ms < now_ms - OLD_MS else instant // WINDOW_MS
