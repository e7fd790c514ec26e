"""English sentences of the shapes of cron expressions."""

from collections.abc import Iterable
from typing import Final

from app.domain.schedules.cron.days import (
    DayRule,
    DaysOfMonth,
    DaysOfWeek,
    LastDay,
    LastWeekday,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    bits_of,
)
from app.domain.schedules.sentences.shapes import (
    Beat,
    Clock,
    HourBeat,
    HourlyAt,
    Shape,
    Times,
    clock_text,
    is_span,
    is_span_of_week,
    monday_first,
    spans_text,
    weekdays_of,
)
from app.domain.text.texts import counted

#: from 1 = Sunday; 0 is Saturday as well
_WEEKDAYS: Final = ("Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    *("", "January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_ORDINALS: Final = ("", "First", "Second", "Third", "Fourth", "Fifth")
#: days of a week that have a name of their own
_WEEKS: Final = {(2, 3, 4, 5, 6): "Weekdays", (1, 7): "Weekends"}


def sentence(shape: Shape) -> str:
    """Return "Weekdays at 08:00" or "Every 5 minutes, weekdays 09:00–18:59"."""
    days = _days(shape.days, shape.months)
    clock = shape.clock
    if isinstance(clock, Times):
        times = _and(clock_text(*time) for time in clock.times)
        return f"{days} at {times}"
    spans = spans_text(clock, " and ")
    if shape.days is None:
        parts = [spans]
    elif isinstance(shape.days, DaysOfWeek):
        parts = [f"{_lower(days)} {spans}".rstrip()]
    else:
        parts = [_lower(days), spans]
    return ", ".join(part for part in (_clock(clock), *parts) if part)


def _clock(clock: Clock) -> str:
    match clock:
        case Beat():
            words = f"Every {_count(clock.step, clock.unit)}"
            if clock.restarts:
                return f"{words} from :{clock.first:02d} of each hour"
            return f"{words} from :{clock.first:02d}" if clock.first else words
        case HourlyAt():
            return f"Hourly at {_and(f':{minute:02d}' for minute in clock.minutes)}"
        case HourBeat():
            words = f"Every {_count(clock.step, 'hour')}"
            if clock.last is not None or not (clock.first or clock.minute):
                return words
            start = clock_text(clock.first, clock.minute) if clock.first else f":{clock.minute:02d}"
            return f"{words} {'from' if clock.first else 'at'} {start}"
    raise TypeError(clock)


def _count(step: int, unit: str) -> str:
    return unit if step == 1 else counted(step, unit)


def _days(rule: DayRule | None, months: tuple[int, ...]) -> str:
    match rule:
        case None:
            return "Daily"
        case DaysOfWeek():
            return _week(weekdays_of(rule))
        case DaysOfMonth():
            return _month_days(bits_of(rule.mask), months)
        case LastDay():
            return _last_day(rule.offset)
        case LastWorkday():
            return "Last weekday of the month"
        case NearestWorkday():
            return f"Weekday nearest to day {rule.entry_day} of the month"
        case LastWeekday():
            return f"Last {_WEEKDAYS[rule.weekday]} of the month"
        case NthWeekday():
            return f"{_ORDINALS[rule.nth]} {_WEEKDAYS[rule.weekday]} of the month"
    raise TypeError(rule)


def _week(days: tuple[int, ...]) -> str:
    if days in _WEEKS:
        return _WEEKS[days]
    weekdays = monday_first(days)
    if is_span_of_week(weekdays):
        return f"{_WEEKDAYS[weekdays[0]]} to {_WEEKDAYS[weekdays[-1]]}"
    return _and(f"{_WEEKDAYS[day]}s" for day in weekdays)


def _month_days(days: tuple[int, ...], months: tuple[int, ...]) -> str:
    numbers = f"{days[0]}–{days[-1]}" if is_span(days) else _and(map(str, days))
    if len(days) == len(months) == 1:
        return f"Yearly on {numbers} {_MONTHS[months[0]]}"
    noun = "day" if len(days) == 1 else "days"
    if months:
        return f"On {noun} {numbers} of {_and(_MONTHS[month] for month in months)}"
    return f"Monthly on {noun} {numbers}"


def _last_day(offset: int) -> str:
    if not offset:
        return "Last day of the month"
    return f"{counted(offset, 'day')} before the last day of the month"


def _lower(days: str) -> str:
    """Return words for the inside of a sentence; names of days keep their capital."""
    first = days.split(" ")[0].rstrip("s,")
    return days if first in _WEEKDAYS else days[0].lower() + days[1:]


def _and(texts: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
