"""Planned starts: how many runs a schedule starts in each of the next hours.

The starts of a schedule are counted one by one up to STARTS_MAX, because one that fires every second has
600,000 a week. With more, they are estimated from one day, hour and minute that have some.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from app.clock import LATEST_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms, period_s, zone

QUARTER_MS: Final[Millis] = 15 * MINUTE_MS
HOUR_MS: Final[Millis] = 60 * MINUTE_MS
DAY_MS: Final[Millis] = 24 * HOUR_MS
#: starts of a schedule within a window that are counted one by one
STARTS_MAX: Final = 24
#: most cached counts: a page is loaded again for each hour that is looked at
COUNTS_KEPT: Final = 8_192


class Window(NamedTuple):
    """Consecutive hours; the first one starts at a multiple of QUARTER_MS."""

    from_ms: Millis
    hours: int

    @property
    def until_ms(self) -> Millis:
        """The end, exclusive."""
        return self.from_ms + self.hours * HOUR_MS

    def hour_of(self, at_ms: Millis) -> int:
        """Return the number of the hour that contains an instant."""
        return (at_ms - self.from_ms) // HOUR_MS


class HourlyStarts(NamedTuple):
    """Starts of a schedule within a window, by the number of the hour."""

    counts: dict[int, int]
    #: whether there are more starts than were counted one by one
    is_estimated: bool = False

    def count_in(self, hours: Iterable[int]) -> int:
        """Return the number of starts in some hours of the window."""
        return sum(self.counts.get(hour, 0) for hour in hours)


class HourOfDay(NamedTuple):
    """Hour as a clock shows it, with its hours of the window: two if the clock shows it twice."""

    day: date
    hour: int
    hours: tuple[int, ...]


def next_days(now_ms: Millis, zone_name: str, *, days: int) -> Window:
    """Return the window from the next full hour of a zone's clock to the midnight ``days`` days later."""
    tz, at_ms = zone(zone_name), (now_ms // QUARTER_MS + 1) * QUARTER_MS
    while datetime.fromtimestamp(at_ms // SECOND_MS, tz).minute:
        at_ms += QUARTER_MS
    last_day = datetime.fromtimestamp(at_ms // SECOND_MS, tz).date() + timedelta(days=days)
    end = datetime.combine(last_day, datetime.min.time(), tz)
    return Window(at_ms, (int(end.timestamp()) * SECOND_MS - at_ms) // HOUR_MS)


def hours_of(window: Window, zone_name: str) -> list[HourOfDay]:
    """Return the hours of a window by the clock of a zone, ascending."""
    tz, hours = zone(zone_name), dict[tuple[date, int], list[int]]()
    for number in range(window.hours):
        local = datetime.fromtimestamp((window.from_ms + number * HOUR_MS) // SECOND_MS, tz)
        hours.setdefault((local.date(), local.hour), []).append(number)
    return [HourOfDay(day, hour, tuple(numbers)) for (day, hour), numbers in hours.items()]


def count_starts(schedule: Schedule, next_ms: Millis, window: Window) -> HourlyStarts:
    """Return the starts of a schedule within a window; raise InvalidCronExpression or InvalidInput.

    ``next_ms`` is the next start of a fixed rate or delay. Runs of a fixed delay count as taking no time.
    """
    if schedule.type not in (ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY):
        return _count_instants(schedule, window)
    from_ms, until_ms = _bounds(schedule, window)
    period_ms = period_s(schedule.conf) * SECOND_MS
    first_ms = next_ms + -(-max(0, from_ms - next_ms) // period_ms) * period_ms
    if period_ms >= HOUR_MS or first_ms >= until_ms:
        return HourlyStarts(Counter(map(window.hour_of, range(first_ms, until_ms, period_ms))))
    hours = range(window.hour_of(first_ms), window.hour_of(until_ms - 1) + 1)
    return HourlyStarts(dict.fromkeys(hours, round(HOUR_MS / period_ms)), is_estimated=True)


def total_starts(counted: Iterable[tuple[HourlyStarts, int]], window: Window) -> list[int]:
    """Return the starts in each hour of a window, from pairs of starts and number of jobs."""
    totals = [0] * window.hours
    for starts, jobs in counted:
        for hour, count in starts.counts.items():
            totals[hour] += count * jobs
    return totals


@lru_cache(COUNTS_KEPT)
def _count_instants(schedule: Schedule, window: Window) -> HourlyStarts:
    """Count starts one by one, or if there are more than STARTS_MAX, estimate them."""
    from_ms, until_ms = _bounds(schedule, window)
    starts = list(islice(_units(schedule, from_ms, until_ms, 1), STARTS_MAX + 1))
    if len(starts) <= STARTS_MAX:
        return HourlyStarts(Counter(map(window.hour_of, starts)))
    first_day_ms = window.until_ms - -(-window.hours * HOUR_MS // DAY_MS) * DAY_MS
    days = list(_units(schedule, first_day_ms, window.until_ms, DAY_MS))
    day_ms = days[len(days) // 2]
    hours = list(_units(schedule, day_ms, day_ms + DAY_MS, HOUR_MS))
    hour_ms = hours[len(hours) // 2]
    minutes = list(_units(schedule, hour_ms, hour_ms + HOUR_MS, MINUTE_MS))
    seconds = list(_units(schedule, minutes[0], minutes[0] + MINUTE_MS, SECOND_MS))
    at = (begin_ms + hour - day_ms for begin_ms in days for hour in hours)
    numbers = [window.hour_of(at_ms) for at_ms in at if from_ms < at_ms + HOUR_MS and at_ms < until_ms]
    return HourlyStarts(dict.fromkeys(numbers, len(minutes) * len(seconds)), is_estimated=True)


def _bounds(schedule: Schedule, window: Window) -> tuple[Millis, Millis]:
    """Return the part of a window, without its end, in which a schedule may start runs."""
    until_ms = min(window.until_ms, schedule.not_after_ms + 1 if schedule.not_after_ms > 0 else LATEST_MS)
    return max(window.from_ms, schedule.not_before_ms), until_ms


def _units(schedule: Schedule, from_ms: Millis, until_ms: Millis, unit_ms: Millis) -> Iterator[Millis]:
    """Yield the beginnings of the units of time, counted from ``from_ms``, that have starts."""
    at_ms = next_after_ms(schedule, from_ms - 1)
    while at_ms is not None and at_ms < until_ms:
        unit_begin_ms = at_ms - (at_ms - from_ms) % unit_ms
        yield unit_begin_ms
        at_ms = next_after_ms(schedule, unit_begin_ms + unit_ms - 1)
