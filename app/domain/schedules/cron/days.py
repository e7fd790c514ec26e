"""Day rules of a cron expression: search for the next allowed day of a month.

Days of the week are numbered as in the expression: 1 = Sunday … 7 = Saturday.
"""

from calendar import isleap
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import ClassVar, Final, Protocol

from app.domain.schedules.cron.fields import DAY_OF_MONTH, DAY_OF_WEEK, AllowedValues, Field

SUNDAY: Final = 1
SATURDAY: Final = 7
DAYS_A_WEEK: Final = 7

_MONTH_DAYS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FEBRUARY: Final = 2
#: cached masks; the page on the load of all jobs reads thousands
_MASKS_KEPT: Final = 16_384


def days_in_month(year: int, month: int) -> int:
    """Return the number of the month's last day."""
    return 29 if month == FEBRUARY and isleap(year) else _MONTH_DAYS[month]


def day_of_week(year: int, month: int, day: int = 1) -> int:
    """Return 1 for Sunday … 7 for Saturday."""
    return date(year, month, day).isoweekday() % DAYS_A_WEEK + 1


def lowest_bit(mask: int) -> int:
    """Return the number of the lowest bit set in a mask that is not 0."""
    return (mask & -mask).bit_length() - 1


@lru_cache(maxsize=_MASKS_KEPT)
def bits_of(mask: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set in a mask, ascending."""
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def mask_of(field: Field, values: AllowedValues) -> int:
    """Return a mask whose bit n is set if the value n is allowed."""
    mask = 0
    for span in values.spans:
        for value in span:
            mask |= 1 << (value if value <= field.high else value - field.size)
    return mask


class DayRule(Protocol):
    """Day rule: which days of a month are allowed."""

    @property
    def entry_day(self) -> int:
        """The day at which a search enters the next month; 1 except for NearestWorkday."""

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return the first allowed day of a month from ``from_day`` on.

        ``from_day`` is 1 or more and may lie past the end of the month.
        """


@dataclass(frozen=True, slots=True)
class DaysOfMonth:
    """Listed days: "1,15"."""

    mask: int
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return the first listed day."""
        rest = self.mask >> from_day
        if not rest:
            return None
        day = from_day + lowest_bit(rest)
        return day if day <= days_in_month(year, month) else None


@dataclass(frozen=True, slots=True)
class LastDay:
    """The last day of the month, or a day some days before it: "L", "L-3"."""

    offset: int
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return that day, if the month is long enough."""
        day = days_in_month(year, month) - self.offset
        return day if day >= from_day else None


@dataclass(frozen=True, slots=True)
class LastWorkday:
    """The working day nearest to the last day, or to a day some days before it: "LW", "L-3W"."""

    offset: int
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return that day; None in a month too short for the offset (the reference searches forever)."""
        return _workday_near(year, month, days_in_month(year, month) - self.offset, from_day)


@dataclass(frozen=True, slots=True)
class NearestWorkday:
    """The working day nearest to a day: "15W".

    In a month of 30 days "31W" fires on the 30th if the day after it is a Saturday, but not if the search
    comes from the month before: it then enters the month at day 31, past its end. Source: observed results of
    the reference.
    """

    entry_day: int

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return that day, which never lies in another month."""
        return _workday_near(year, month, self.entry_day, from_day)


@dataclass(frozen=True, slots=True)
class DaysOfWeek:
    """Listed days of the week: "MON-FRI"."""

    #: bit n: the day of the week n, over two consecutive weeks
    fortnight: int
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return the first listed day of the week."""
        last = days_in_month(year, month)
        if from_day > last:
            return None
        day = from_day + lowest_bit(self.fortnight >> day_of_week(year, month, from_day))
        return day if day <= last else None


@dataclass(frozen=True, slots=True)
class LastWeekday:
    """The last occurrence of a day of the week in the month: "6L"."""

    weekday: int
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return that day."""
        last = days_in_month(year, month)
        day = last - (day_of_week(year, month, last) - self.weekday) % DAYS_A_WEEK
        return day if day >= from_day else None


@dataclass(frozen=True, slots=True)
class NthWeekday:
    """The n-th occurrence of a day of the week in the month: "6#3"."""

    weekday: int
    nth: int
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return that day, if the month has that many."""
        day = 1 + (self.weekday - day_of_week(year, month)) % DAYS_A_WEEK + (self.nth - 1) * DAYS_A_WEEK
        return day if from_day <= day <= days_in_month(year, month) else None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The days of several rules: "1,L", "1W,15W". A month without the day of a "31W" leaves it out."""

    rules: tuple[DayRule, ...]
    entry_day: ClassVar[int] = 1

    def day_in(self, year: int, month: int, from_day: int) -> int | None:
        """Return the first day that any of the rules allows."""
        last = days_in_month(year, month)
        days = [rule.day_in(year, month, from_day) for rule in self.rules if rule.entry_day <= last]
        return min((day for day in days if day is not None), default=None)


def day_rule(month_days: AllowedValues, week_days: AllowedValues) -> DayRule:
    """Return the rule of the day field that is not "?". Of a week, L and # apply to the smallest day."""
    if week_days.no_value:
        if month_days.items:
            return AnyOf(tuple(map(_month_rule, month_days.items)))
        return _month_rule(month_days)
    mask = mask_of(DAY_OF_WEEK, week_days)
    if week_days.last:
        return LastWeekday(lowest_bit(mask))
    if week_days.nth:
        return NthWeekday(lowest_bit(mask), week_days.nth)
    return DaysOfWeek(mask | mask << DAYS_A_WEEK)


def _month_rule(values: AllowedValues) -> DayRule:
    """Return the rule of a day of month without a list, or with a plain one."""
    if values.last:
        return (LastWorkday if values.workday else LastDay)(values.last_offset)
    mask = mask_of(DAY_OF_MONTH, values)
    return NearestWorkday(lowest_bit(mask)) if values.workday else DaysOfMonth(mask)


def _workday_near(year: int, month: int, day: int, from_day: int) -> int | None:
    """Return the working day nearest to ``day`` if it lies in the month and not before ``from_day``.

    ``day`` itself may lie outside the month.
    """
    last = days_in_month(year, month)
    weekday = (day_of_week(year, month) + day - SUNDAY - 1) % DAYS_A_WEEK + SUNDAY
    if weekday == SATURDAY:
        day += 2 if day == 1 else -1
    elif weekday == SUNDAY:
        day += -2 if day == last else 1
    return day if from_day <= day <= last else None
