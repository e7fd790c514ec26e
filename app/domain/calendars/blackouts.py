"""Blackouts: times in which nothing may start, once or again and again.

Source: docs/reference/blackouts.md, sections 2 and 4.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from typing import Final, NamedTuple

from app.clock import HOUR_MS, LATEST_MS, SECOND_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.schedules.planning import latest_until
from app.domain.schedules.schedule import Schedule, next_raw_ms, zone

#: so many windows that follow each other without a gap have no end: two years of one a day
WINDOWS_MAX: Final = 731
#: longest duration of a window that recurs
DURATION_MAX_S: Final = 31 * 86_400
#: time up to which the closures of each hour are kept
SHARED_MS: Final[Millis] = 6 * HOUR_MS


class Afterwards(StrEnum):
    """What becomes of the instants of schedules that a blackout has covered, at its end."""

    SKIP = "skip"
    #: the latest of them runs
    RUN_ONCE = "run_once"


class Closure(NamedTuple):
    """Time from ``from_ms`` to before ``until_ms`` in which one or several blackouts are on."""

    from_ms: Millis
    #: None: it has no end yet
    until_ms: Millis | None
    #: whether any of them runs the latest instant at the end
    runs_once: bool
    #: the blackout that is on at its beginning
    blackout: "Blackout"

    def covers(self, at_ms: Millis) -> bool:
        """Whether an instant lies within."""
        return self.from_ms <= at_ms and (self.until_ms is None or at_ms < self.until_ms)


class Blackout(NamedTuple):
    """A blackout: one time, or windows that begin by a cron expression.

    It applies to one job, the jobs of a group, those with a tag, or to all.
    """

    id: int
    from_ms: Millis
    #: None: it has no end yet; of a recurring one: no window begins from then on, and an open one ends
    until_ms: Millis | None
    #: of a recurring one; otherwise empty
    cron: str = ""
    #: length of a window
    duration_s: int = 0
    zone: str = "UTC"
    group_id: int | None = None
    job_id: int | None = None
    tag: str = ""
    afterwards: Afterwards = Afterwards.SKIP
    reason: str = ""

    def window_at(self, at_ms: Millis) -> tuple[Millis, Millis | None] | None:
        """Return the window that covers an instant, from and until; None: there is none."""
        if at_ms < self.from_ms or (self.until_ms is not None and at_ms >= self.until_ms):
            return None
        if not self.cron:
            return self.from_ms, self.until_ms
        begin_ms = self._latest_begin(at_ms)
        return None if begin_ms is None else self._window(begin_ms)

    def next_window(self, after_ms: Millis) -> tuple[Millis, Millis | None] | None:
        """Return the first window that begins after an instant; None: there is none."""
        if self.until_ms is not None and self.until_ms <= self.from_ms:  # It was ended before it began.
            return None
        if not self.cron:
            return (self.from_ms, self.until_ms) if self.from_ms > after_ms else None
        # A window that began before the blackout did is cut: it begins with it.
        if after_ms < self.from_ms and (first := self.window_at(self.from_ms)) is not None:
            return first
        begin_ms = _next_begin(self.cron, self.zone, max(after_ms, self.from_ms - 1))
        if begin_ms is None or (self.until_ms is not None and begin_ms >= self.until_ms):
            return None
        return self._window(begin_ms)

    def _window(self, begin_ms: Millis) -> tuple[Millis, Millis]:
        end_ms = begin_ms + self.duration_s * SECOND_MS
        return max(begin_ms, self.from_ms), end_ms if self.until_ms is None else min(end_ms, self.until_ms)

    def _latest_begin(self, at_ms: Millis) -> Millis | None:
        """Return the latest beginning of a window that covers an instant."""
        next_begin = partial(_next_begin, self.cron, self.zone)
        first_ms = next_begin(at_ms - self.duration_s * SECOND_MS)
        if first_ms is None or first_ms > at_ms:
            return None
        second_ms = next_begin(first_ms)
        return first_ms if second_ms is None or second_ms > at_ms else latest_until(at_ms, next_begin)


@lru_cache(maxsize=16_384)
def _next_begin(cron: str, time_zone: str, after_ms: Millis) -> Millis | None:
    """Return the first beginning after an instant, the same from wherever the search begins.

    Of an hour that is twice six fields mean the second one, which they find only from before the first one.
    """
    if after_ms >= LATEST_MS:
        return None
    local = datetime.fromtimestamp(after_ms // SECOND_MS, zone(time_zone))
    early, late = (local.replace(fold=local.fold | fold).utcoffset() or timedelta() for fold in (0, 1))
    schedule, at_ms = Schedule(ScheduleType.CRON, cron, time_zone), after_ms
    if early > late:
        at_ms -= (early - late) // timedelta(milliseconds=1)
    while (begin_ms := next_raw_ms(schedule, at_ms)) is not None and begin_ms <= after_ms:
        at_ms = begin_ms
    return begin_ms


def closure_at(blackouts: Sequence[Blackout], at_ms: Millis) -> Closure | None:
    """Return the time around an instant that blackouts cover without a gap; None: none covers it."""
    first = _window_at(blackouts, at_ms)
    if first is None:
        return None
    blackout, from_ms, until_ms = first
    for _ in range(WINDOWS_MAX):
        if (before := _window_at(blackouts, from_ms - 1)) is None:
            break
        blackout, from_ms = before[0], before[1]
    for _ in range(WINDOWS_MAX):
        if until_ms is None or (after := _window_at(blackouts, until_ms)) is None:
            break
        until_ms = after[2]
    else:
        until_ms = None
    runs_once = until_ms is not None and any(
        _is_within(blackout, from_ms, until_ms) for blackout in blackouts
    )
    return Closure(from_ms, until_ms, runs_once, blackout)


def _is_within(blackout: Blackout, from_ms: Millis, until_ms: Millis) -> bool:
    """Whether a blackout that runs the latest instant has a window that begins within a time."""
    if blackout.afterwards is not Afterwards.RUN_ONCE:
        return False
    window = blackout.next_window(from_ms - 1)
    return window is not None and window[0] < until_ms


def _window_at(blackouts: Sequence[Blackout], at_ms: Millis) -> tuple[Blackout, Millis, Millis | None] | None:
    """Return the blackout that covers an instant and ends last, with its window."""
    latest: tuple[Blackout, Millis, Millis | None] | None = None
    for blackout in blackouts:
        window = blackout.window_at(at_ms)
        if window is None:
            continue
        if window[1] is None:
            return blackout, *window
        if latest is None or latest[2] is None or window[1] > latest[2]:
            latest = blackout, *window
    return latest


def closure_of_hour(blackouts: tuple[Blackout, ...], at_ms: Millis) -> Closure | None:
    """Return what ``closure_at`` does, quickly for many instants of an hour."""
    hour = at_ms // HOUR_MS
    return next((closure for closure in _closures_of_hour(blackouts, hour) if closure.covers(at_ms)), None)


@lru_cache(maxsize=4_096)
def _closures_of_hour(blackouts: tuple[Blackout, ...], hour: int) -> Sequence[Closure]:
    return tuple(closures(blackouts, hour * HOUR_MS, (hour + 1) * HOUR_MS))


def closures(blackouts: Sequence[Blackout], from_ms: Millis, until_ms: Millis) -> Iterator[Closure]:
    """Yield the closures that reach into the time from ``from_ms`` to before ``until_ms``, ascending."""
    closure = closure_at(blackouts, from_ms)
    at_ms = from_ms
    while at_ms < until_ms:
        if closure is not None:
            yield closure
            if closure.until_ms is None:
                return
            at_ms = closure.until_ms
        begins = [
            window[0] for blackout in blackouts if (window := blackout.next_window(at_ms - 1)) is not None
        ]
        at_ms = min(begins, default=until_ms)
        closure = closure_at(blackouts, at_ms) if at_ms < until_ms else None


def closures_shared(blackouts: tuple[Blackout, ...], from_ms: Millis, until_ms: Millis) -> Iterator[Closure]:
    """Yield what ``closures`` does, of a short time quickly for many jobs with the same blackouts."""
    if until_ms - from_ms > SHARED_MS:
        yield from closures(blackouts, from_ms, until_ms)
        return
    at_ms = from_ms
    for hour in range(from_ms // HOUR_MS, -(-until_ms // HOUR_MS)):
        for closure in _closures_of_hour(blackouts, hour):
            if closure.from_ms >= until_ms or (closure.until_ms is not None and closure.until_ms <= at_ms):
                continue
            yield closure
            if closure.until_ms is None:
                return
            at_ms = closure.until_ms
