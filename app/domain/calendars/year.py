"""Days of a year by a calendar, each with its kind and its name."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from app.domain.calendars.calendar import Calendar, DayKind


class DayOfYear(NamedTuple):
    """A day as a calendar has it."""

    day: date
    kind: DayKind
    name: str
    #: by its weekday alone, or by the rule for unknown days
    by_rule: bool
    #: a workday although its weekday is none (调休)
    is_makeup: bool
    is_known: bool


def days_of_year(calendar: Calendar, year: int) -> Iterator[DayOfYear]:
    """Yield the days of a year, ascending."""
    day = date(year, 1, 1)
    while day.year == year:
        yield DayOfYear(
            day,
            calendar.kind_of(day),
            calendar.names.get(day, ""),
            day not in calendar.days,
            calendar.is_makeup(day),
            calendar.is_known(day),
        )
        day += timedelta(1)
