"""Planned starts: estimate how many runs a schedule starts in each of the next hours.

A job that runs every second has 600,000 starts a week, so starts are not enumerated. A cron expression counts
in the hours and days it allows, a period shorter than an hour by its average. Clock changes and bounds within
an hour are ignored.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

from app.clock import HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.schedules.cron import unix
from app.domain.schedules.cron.days import bits_of, lowest_bit
from app.domain.schedules.cron.expression import CronExpression, split_fields
from app.domain.schedules.schedule import Schedule, next_after_ms, zone

QUARTER_MS: Final[Millis] = 15 * MINUTE_MS
#: most cached estimates of cron expressions
SCHEDULES_KEPT: Final = 16_384


class Window(NamedTuple):
    """Consecutive hours; the first one starts at a multiple of QUARTER_MS."""

    from_ms: Millis
    hours: int

    @property
    def until_ms(self) -> Millis:
        """The end, exclusive."""
        return self.from_ms + self.hours * HOUR_MS


class HourlyStarts(NamedTuple):
    """Estimated starts of a schedule within a window."""

    #: starts in each hour of ``hours``
    per_hour: float = 0
    #: bit n: the n-th hour of the window has starts
    hours: int = 0

    def count_in(self, hours: Iterable[int]) -> int:
        """Return the number of starts in some hours of the window."""
        return round(self.per_hour * sum(self.hours >> hour & 1 for hour in hours))

    def is_frequent(self, window: Window) -> bool:
        """Whether there are more starts in the window than hours."""
        return self.per_hour * self.hours.bit_count() > window.hours


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
    first, hours_by_clock = _first_day(window, zone_name), dict[tuple[int, int], list[int]]()
    for number, local_hour in enumerate(_local_hours(zone_name, window, 0)):
        hours_by_clock.setdefault(local_hour, []).append(number)
    return [
        HourOfDay(first + timedelta(day), hour, tuple(hours)) for (day, hour), hours in hours_by_clock.items()
    ]


def estimate_starts(schedule: Schedule, next_ms: Millis, window: Window) -> HourlyStarts:
    """Estimate the starts of a schedule within a window; raise InvalidCronExpression or InvalidInput.

    ``next_ms`` is the next start of a fixed rate or delay. Runs of a fixed delay count as taking no time.
    """
    from_ms, until_ms = max(window.from_ms, schedule.not_before_ms), window.until_ms
    if schedule.not_after_ms > 0:
        until_ms = min(until_ms, schedule.not_after_ms + 1)
    if from_ms >= until_ms:
        return HourlyStarts()
    match schedule.type:
        case ScheduleType.CRON:
            starts = _cron_starts(schedule.conf, schedule.time_zone, window)
            return starts._replace(hours=starts.hours & _hours_between(window, from_ms, until_ms))
        case ScheduleType.FIX_RATE | ScheduleType.FIX_DELAY:
            return _repeated_starts(schedule.conf, next_ms, window, from_ms, until_ms)
        case ScheduleType.AT:
            at_ms = next_after_ms(schedule, from_ms - 1)
            if at_ms is not None and at_ms < until_ms:
                return HourlyStarts(1, 1 << (at_ms - window.from_ms) // HOUR_MS)
    return HourlyStarts()


def total_starts(starts_and_jobs: Iterable[tuple[HourlyStarts, int]], window: Window) -> list[int]:
    """Return the starts in each hour of a window, from pairs of estimated starts and number of jobs."""
    by_hours, totals = dict[int, float](), [0.0] * window.hours
    for starts, jobs in starts_and_jobs:
        by_hours[starts.hours] = by_hours.get(starts.hours, 0) + starts.per_hour * jobs
    for hours, count in by_hours.items():
        while hours:
            totals[lowest_bit(hours)] += count
            hours &= hours - 1
    return [round(total) for total in totals]


def start_minutes(
    schedule: Schedule, next_ms: Millis, starts: HourlyStarts, window: Window, hours: Iterable[int]
) -> Iterator[tuple[int, float]]:
    """Yield the minutes (0: the first of the window) of some hours with starts, and how many each has.

    ``starts`` are those estimated of the schedule.
    """
    with_starts = [hour for hour in hours if starts.hours >> hour & 1]
    if not with_starts:
        return
    if schedule.type == ScheduleType.CRON:
        minutes, _hours, per_minute, _days = _cron_parts(schedule.conf)
        offset = datetime.fromtimestamp(window.from_ms // SECOND_MS, zone(schedule.time_zone)).minute
        of_an_hour = [(minute - offset) % 60 for minute in bits_of(minutes)]
        yield from ((60 * hour + minute, per_minute) for hour in with_starts for minute in of_an_hour)
        return
    if schedule.type == ScheduleType.AT:
        at_ms = next_after_ms(schedule, window.from_ms - 1) or window.until_ms
        yield from (((at_ms - window.from_ms) // MINUTE_MS, 1) for _hour in with_starts)
        return
    period_ms = _period(schedule.conf)
    for hour in with_starts:
        if period_ms <= MINUTE_MS:
            yield from ((60 * hour + minute, MINUTE_MS / period_ms) for minute in range(60))
            continue
        from_ms = window.from_ms + hour * HOUR_MS
        instants = range(_first_start(next_ms, period_ms, from_ms), from_ms + HOUR_MS, period_ms)
        yield from (((at_ms - window.from_ms) // MINUTE_MS, 1) for at_ms in instants)


@lru_cache(maxsize=SCHEDULES_KEPT)
def _cron_starts(conf: str, zone_name: str, window: Window) -> HourlyStarts:
    """Count a cron expression by the hours of the zone's clock and the days it allows."""
    minutes, hours, per_minute, day_conf = _cron_parts(conf)
    by_day, by_hour = _local_masks(zone_name, window, lowest_bit(minutes))
    days = _days_allowed(day_conf, _first_day(window, zone_name), len(by_day))
    return HourlyStarts(per_minute * minutes.bit_count(), _union(by_day, days) & _union(by_hour, hours))


@lru_cache(maxsize=SCHEDULES_KEPT)
def _cron_parts(conf: str) -> tuple[int, int, int, str]:
    """Return masks of minutes and hours, starts per minute, and the expression for midnight of its days."""
    fields = split_fields(conf)
    if len(fields) == unix.FIELD_COUNT:
        return *unix.minutes_and_hours(fields), 1, " ".join(["0 0", *fields[2:]])
    cron = CronExpression.parse(conf)
    return cron.minutes, cron.hours, cron.seconds.bit_count(), " ".join(["0 0 0", *fields[3:]])


def _repeated_starts(
    conf: str, next_ms: Millis, window: Window, from_ms: Millis, until_ms: Millis
) -> HourlyStarts:
    """Count a fixed period: by its average if shorter than an hour, otherwise each start."""
    period_ms = _period(conf)
    first_ms = _first_start(next_ms, period_ms, from_ms)
    if period_ms < HOUR_MS and first_ms < until_ms:
        return HourlyStarts(HOUR_MS / period_ms, _hours_between(window, first_ms, until_ms))
    starts = range(first_ms, until_ms, period_ms)
    return HourlyStarts(1, sum(1 << (at_ms - window.from_ms) // HOUR_MS for at_ms in starts))


def _period(conf: str) -> Millis:
    """Return the length of a fixed rate or delay."""
    return next_after_ms(Schedule(ScheduleType.FIX_RATE, conf, "UTC"), 0) or HOUR_MS


def _first_start(next_ms: Millis, period_ms: Millis, from_ms: Millis) -> Millis:
    """Return the first start of a fixed period that is not before an instant."""
    return next_ms + -(-max(0, from_ms - next_ms) // period_ms) * period_ms


def _hours_between(window: Window, from_ms: Millis, until_ms: Millis) -> int:
    """Return a mask of the hours of a window that lie, at least partly, between two instants in it."""
    first, end = (from_ms - window.from_ms) // HOUR_MS, -(-(until_ms - window.from_ms) // HOUR_MS)
    return (1 << end) - (1 << first)


def _first_day(window: Window, zone_name: str) -> date:
    return datetime.fromtimestamp(window.from_ms // SECOND_MS, zone(zone_name)).date()


def _union(masks: list[int], selection: int) -> int:
    return reduce(or_, (mask for number, mask in enumerate(masks) if selection >> number & 1), 0)


@lru_cache(maxsize=1024)
def _local_masks(zone_name: str, window: Window, minute: int) -> tuple[list[int], list[int]]:
    """Return masks of the hours of a window: those of each local day, and those of each hour of the day."""
    local = _local_hours(zone_name, window, minute)
    by_day, by_hour = [0] * (local[-1][0] + 1), [0] * 24
    for number, (day, hour) in enumerate(local):
        by_day[day] |= 1 << number
        by_hour[hour] |= 1 << number
    return by_day, by_hour


def _local_hours(zone_name: str, window: Window, minute: int) -> list[tuple[int, int]]:
    """Return the local day (0: the first) and hour at which each hour of a window reaches this minute.

    So a job at 3:45 counts in the right hour for a user whose zone differs by half an hour.
    """
    tz, first, local_hours = zone(zone_name), _first_day(window, zone_name), list[tuple[int, int]]()
    for hour in range(window.hours):
        at_s = (window.from_ms + hour * HOUR_MS) // SECOND_MS
        to_minute = (minute - datetime.fromtimestamp(at_s, tz).minute) % 60
        local = datetime.fromtimestamp(at_s + to_minute * 60, tz)
        local_hours.append(((local.date() - first).days, local.hour))
    return local_hours


@lru_cache(maxsize=1024)
def _days_allowed(day_conf: str, first: date, days: int) -> int:
    """Return a mask of the days, counted from ``first``, on which a cron expression for midnight fires."""
    begin_ms = int(datetime.combine(first, datetime.min.time(), zone("UTC")).timestamp()) * SECOND_MS
    schedule, mask, at_ms = Schedule(ScheduleType.CRON, day_conf, "UTC"), 0, begin_ms - 1
    while (next_ms := next_after_ms(schedule, at_ms)) is not None:
        day = (next_ms - begin_ms) // (24 * HOUR_MS)
        if day >= days:
            break
        mask, at_ms = mask | 1 << day, next_ms
    return mask
