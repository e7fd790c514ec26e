"""Calendar: which days are workdays and which are holidays, over a weekly pattern."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Final

#: days of a week that are no workdays, as ``date.isoweekday`` numbers them: 1 is Monday
SATURDAY_AND_SUNDAY: Final = frozenset((6, 7))
#: from this month on a calendar should know the next year: China announces its holidays in November
ENDING_MONTH: Final = 11


class DayKind(StrEnum):
    """What a day is, whatever its weekday."""

    WORKDAY = "workday"
    HOLIDAY = "holiday"


class UnknownDays(StrEnum):
    """What the days are after those that a calendar knows."""

    #: workdays but for the weekend, as if there were no holidays
    WEEKDAY = "weekday"
    HOLIDAY = "holiday"
    WORKDAY = "workday"


@dataclass(frozen=True, slots=True, eq=False)
class Calendar:
    """One version of a named set of days.

    Two are equal if they are the same object, so that what was computed of one is found again quickly.
    """

    name: str
    weekend: frozenset[int] = SATURDAY_AND_SUNDAY
    #: days that are something else than their weekday says, or that have a name
    days: Mapping[date, DayKind] = field(default_factory=dict)
    #: day -> its name, such as 国庆节
    names: Mapping[date, str] = field(default_factory=dict)
    #: the last day that it knows; None: it knows all
    valid_until: date | None = None
    unknown: UnknownDays = UnknownDays.WEEKDAY

    def kind_of(self, day: date) -> DayKind:
        """Return what a day is."""
        if (kind := self.days.get(day)) is not None:
            return kind
        if not self.is_known(day) and self.unknown is not UnknownDays.WEEKDAY:
            return DayKind.HOLIDAY if self.unknown is UnknownDays.HOLIDAY else DayKind.WORKDAY
        return DayKind.HOLIDAY if day.isoweekday() in self.weekend else DayKind.WORKDAY

    def is_known(self, day: date) -> bool:
        """Whether a day is one that the calendar knows; others follow its rule for unknown days."""
        return self.valid_until is None or day <= self.valid_until

    def is_ending(self, today: date) -> bool:
        """Whether it does not know a day, or from 1 November on that the next year begins."""
        new_year = date(today.year + 1, 1, 1)
        return not self.is_known(today) or (today.month >= ENDING_MONTH and not self.is_known(new_year))

    def is_makeup(self, day: date) -> bool:
        """Whether a day is a workday although its weekday is none (调休)."""
        return self.days.get(day) is DayKind.WORKDAY and day.isoweekday() in self.weekend


@lru_cache(maxsize=8_192)
def days_of_month(calendar: Calendar, kind: DayKind, year: int, month: int) -> tuple[date, ...]:
    """Return the days of a month that are of a kind, ascending."""
    first = date(year, month, 1)
    return tuple(
        day
        for number in range(1, 32)
        if (day := _day(first, number)) is not None and calendar.kind_of(day) is kind
    )


def _day(first: date, number: int) -> date | None:
    try:
        return first.replace(day=number)
    except ValueError:  # a shorter month
        return None
