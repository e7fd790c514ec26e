"""Shapes of frequent cron expressions: the times of a day and the days, as the compiled expression has them.

A shape allows exactly the seconds that its expression allows. An expression that is not frequent has none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from app.domain.schedules.cron import unix
from app.domain.schedules.cron.days import (
    DAYS_A_WEEK,
    DayRule,
    DaysOfMonth,
    DaysOfWeek,
    LastDay,
    LastWeekday,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    bits_of,
    mask_of,
)
from app.domain.schedules.cron.expression import CronExpression, split_fields
from app.domain.schedules.cron.fields import DAY_OF_MONTH, MONTH, YEAR, parse_field

Unit = Literal["second", "minute", "hour"]

#: most times of a day that a sentence lists; so many are listed even if they have a regular distance
TIMES_LISTED: Final = 6
TIMES_PREFERRED: Final = 3
#: most minutes of an hour, days of a month, months and spans of hours that a sentence lists
LISTED: Final = 4
SPANS_LISTED: Final = 3
#: days in a row that are written as a span
SPAN_DAYS: Final = 3
#: a month has each day of the week at most so often
MOST_WEEKS: Final = 5
#: last day that each month has, so that the search for a nearest working day misses no month
_LAST_COMMON_DAY: Final = 28
_MINUTES: Final = 60
_HOURS: Final = 24
_ALL_MONTH_DAYS: Final = mask_of(DAY_OF_MONTH, parse_field(DAY_OF_MONTH, "*"))
_ALL_MONTHS: Final = mask_of(MONTH, parse_field(MONTH, "*"))
_ALL_YEARS: Final = parse_field(YEAR, "*").spans
_ALL_WEEKDAYS: Final = tuple(range(1, DAYS_A_WEEK + 1))


@dataclass(frozen=True, slots=True)
class Times:
    """Listed times of a day: hour, minute, second."""

    times: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Beat:
    """Every ``step`` seconds or minutes from ``first`` on, in the hours of ``spans``; none: in all hours."""

    step: int
    unit: Unit
    first: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    #: the step does not divide the hour, so that the count starts again in each
    restarts: bool = False


@dataclass(frozen=True, slots=True)
class HourlyAt:
    """Some minutes of the hours in ``spans``; no span: of all hours."""

    minutes: tuple[int, ...]
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class HourBeat:
    """Every ``step`` hours at a minute, from an hour to another; the whole day if ``last`` is None."""

    step: int
    minute: int
    first: int
    last: int | None


Clock = Times | Beat | HourlyAt | HourBeat


@dataclass(frozen=True, slots=True)
class Shape:
    """Times of a day, and the days: a rule, or None for each day; ``months`` is empty for all."""

    clock: Clock
    days: DayRule | None
    months: tuple[int, ...] = ()


def find_shape(expression: str) -> Shape | None:
    """Return the shape of a valid expression of five to seven fields; None if it is not a frequent one."""
    fields = split_fields(expression)
    if len(fields) == unix.FIELD_COUNT:
        return _unix_shape(fields)
    cron = CronExpression.parse(expression)
    if cron.years != _ALL_YEARS:
        return None
    clock = _clock(bits_of(cron.seconds), bits_of(cron.minutes), bits_of(cron.hours))
    return _shape(clock, cron.days, cron.months)


def weekdays_of(rule: DaysOfWeek) -> tuple[int, ...]:
    """Return the days of a week, 1 = Sunday … 7 = Saturday."""
    return tuple(day for day in _ALL_WEEKDAYS if (rule.fortnight | rule.fortnight >> DAYS_A_WEEK) >> day & 1)


def monday_first(days: Iterable[int]) -> list[int]:
    """Return days of a week in the order of a working week."""
    return sorted(days, key=lambda day: (day - 2) % DAYS_A_WEEK)


def spans_of(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return the runs of consecutive numbers: ``(9, 11), (14, 17)``."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return tuple(spans)


def is_span(numbers: Sequence[int]) -> bool:
    """Whether a sentence writes ascending numbers as a span: they are consecutive, and not too few."""
    return len(numbers) >= SPAN_DAYS and len(spans_of(numbers)) == 1


def is_span_of_week(days: Iterable[int]) -> bool:
    """Whether a sentence writes days of a week, Monday first, as a span."""
    return is_span([(day - 2) % DAYS_A_WEEK for day in days])


def clock_text(hour: int, minute: int, second: int = 0) -> str:
    """Return a time of day: "02:30", with seconds only if they are not 0."""
    return f"{hour:02d}:{minute:02d}:{second:02d}" if second else f"{hour:02d}:{minute:02d}"


def spans_text(clock: Clock, separator: str) -> str:
    """Return when a clock starts and ends: "09:00–18:59"; empty if it goes on all day."""
    match clock:
        case Beat() | HourlyAt():
            return separator.join(f"{first:02d}:00–{last:02d}:59" for first, last in clock.spans)
        case HourBeat(minute=minute, first=first, last=int() as last):
            return f"{clock_text(first, minute)}–{clock_text(last, minute)}"
    return ""


def _unix_shape(fields: list[str]) -> Shape | None:
    days = unix.day_masks(fields)
    if days is None:
        return None
    minutes, hours = unix.minutes_and_hours(fields)
    month_days, months, weekdays = days
    rule: DayRule = DaysOfMonth(month_days)
    if weekdays:
        rule = DaysOfWeek(weekdays << 1 | weekdays << 1 + DAYS_A_WEEK)
    return _shape(_clock((0,), bits_of(minutes), bits_of(hours)), rule, months)


def _shape(clock: Clock | None, rule: DayRule, months: int) -> Shape | None:
    if clock is None:
        return None
    days = None if _is_daily(rule) else rule
    if not (days is None or _has_words(days)):
        return None
    if months == _ALL_MONTHS:
        return Shape(clock, days)
    if not (isinstance(days, DaysOfMonth) and months.bit_count() <= LISTED):
        return None
    return Shape(clock, days, bits_of(months))


def _is_daily(rule: DayRule) -> bool:
    match rule:
        case DaysOfMonth():
            return rule.mask & _ALL_MONTH_DAYS == _ALL_MONTH_DAYS
        case DaysOfWeek():
            return weekdays_of(rule) == _ALL_WEEKDAYS
    return False


def _has_words(rule: DayRule) -> bool:
    match rule:
        case DaysOfMonth():
            days = bits_of(rule.mask)
            return len(days) <= LISTED or len(spans_of(days)) == 1
        case NearestWorkday():
            return rule.entry_day <= _LAST_COMMON_DAY
        case LastWorkday():
            return rule.offset == 0
        case NthWeekday():
            return rule.nth <= MOST_WEEKS
    return isinstance(rule, DaysOfWeek | LastDay | LastWeekday)


def _clock(seconds: tuple[int, ...], minutes: tuple[int, ...], hours: tuple[int, ...]) -> Clock | None:
    count = len(seconds) * len(minutes) * len(hours)
    if count <= TIMES_PREFERRED:
        return _times(seconds, minutes, hours)
    spans = () if len(hours) == _HOURS else spans_of(hours)
    if len(spans) <= SPANS_LISTED:
        clock = _of_each_hour(seconds, minutes, spans)
        if clock is not None and (_is_wide(spans) or not isinstance(clock, HourlyAt)):
            return clock
    if seconds == (0,) and len(minutes) == 1 and (beat := _hour_beat(minutes[0], hours, count)):
        return beat
    return _times(seconds, minutes, hours) if count <= TIMES_LISTED else None


def _times(seconds: tuple[int, ...], minutes: tuple[int, ...], hours: tuple[int, ...]) -> Times:
    return Times(tuple((hour, minute, second) for hour in hours for minute in minutes for second in seconds))


def _of_each_hour(
    seconds: tuple[int, ...], minutes: tuple[int, ...], spans: tuple[tuple[int, int], ...]
) -> Beat | HourlyAt | None:
    """Return what happens in each hour of some spans."""
    if len(minutes) == _MINUTES and len(seconds) > 1:
        step = _step(seconds, _MINUTES)
        return Beat(step, "second", 0, spans) if step and seconds[0] == 0 else None
    if seconds != (0,):
        return None
    if len(minutes) <= LISTED and not _step(minutes, _MINUTES):
        return HourlyAt(minutes, spans)
    if step := _step(minutes, _MINUTES):
        return Beat(step, "minute", minutes[0], spans)
    if step := _step(minutes, _MINUTES, restarts=True):
        return Beat(step, "minute", minutes[0], spans, restarts=True)
    return None


def _hour_beat(minute: int, hours: tuple[int, ...], count: int) -> HourBeat | None:
    """Return the regular distance of some hours."""
    if step := _step(hours, _HOURS):
        return HourBeat(step, minute, hours[0], None)
    distance = hours[1] - hours[0]
    is_regular = all(later - earlier == distance for earlier, later in pairwise(hours))
    if count > TIMES_LISTED and distance > 1 and is_regular:
        return HourBeat(distance, minute, hours[0], hours[-1])
    return None


def _is_wide(spans: tuple[tuple[int, int], ...]) -> bool:
    """Whether each span has several hours, so that "hourly" is true of it."""
    return all(first < last for first, last in spans)


def _step(numbers: tuple[int, ...], size: int, *, restarts: bool = False) -> int:
    """Return the distance of numbers that go through a whole cycle; 0 if they do not.

    With ``restarts`` it need not divide the cycle.
    """
    if len(numbers) < 2:
        return 0
    step = numbers[1] - numbers[0]
    if numbers != tuple(range(numbers[0], size, step)) or numbers[0] >= step:
        return 0
    return step if restarts or size % step == 0 else 0
