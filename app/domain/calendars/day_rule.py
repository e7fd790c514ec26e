"""Day rule of a job: on which days its schedule runs, and what becomes of the others.

Source: docs/reference/calendars.md, section 2.
"""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from app.domain.calendars.calendar import Calendar, DayKind, days_of_month

#: name of the field, also in errors
CALENDAR: Final = "calendar"
#: most characters of the name of a calendar
NAME_MAX: Final = 64
#: an instant is moved so many days at most
SHIFT_DAYS_MAX: Final = 31
#: the n-th workday of a month: from the first to the last of the longest month
NTH_MAX: Final = 23
#: days in which a rule has to allow one; later ones are not looked for
REACH_DAYS: Final = 731
_DAY: Final = timedelta(days=1)


class On(StrEnum):
    """The days on which a schedule runs."""

    WORKDAYS = "workdays"
    HOLIDAYS = "holidays"


class Otherwise(StrEnum):
    """What becomes of an instant on another day."""

    SKIP = "skip"
    #: it moves to the next day on which the schedule runs, at the same time of day
    NEXT = "next"
    PREVIOUS = "previous"


class EnteredRule(NamedTuple):
    """Rule of a job as it is stored: the value of `xxl_job_info.calendar`."""

    name: str
    on: On = On.WORKDAYS
    otherwise: Otherwise = Otherwise.SKIP
    #: of the days of a month only this one: 1 the first, -1 the last; None: all
    nth: int | None = None

    @property
    def moves(self) -> bool:
        """Whether instants are moved to other days."""
        return self.otherwise is not Otherwise.SKIP


@lru_cache(maxsize=4_096)
def parse_rule(text: str | None) -> EnteredRule | None:
    """Return the rule of a stored text; None: it is empty, or another program has stored it."""
    try:
        value: Any = json.loads(text or "null")
        if not isinstance(value, dict) or not isinstance(value["name"], str):
            return None
        nth = value.get("nth")
        is_nth = isinstance(nth, int) and (1 <= nth <= NTH_MAX or nth == -1)
        return EnteredRule(
            value["name"],
            On(value.get("on", On.WORKDAYS)),
            Otherwise(value.get("otherwise", Otherwise.SKIP)),
            nth if is_nth else None,
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class DayRule:
    """Rule of a job with the calendar that it names."""

    calendar: Calendar
    rule: EnteredRule

    @property
    def moves(self) -> bool:
        """Whether instants are moved to other days."""
        return self.rule.moves

    def allows(self, day: date) -> bool:
        """Whether the schedule runs on a day."""
        kind = DayKind.WORKDAY if self.rule.on is On.WORKDAYS else DayKind.HOLIDAY
        if self.rule.nth is None:
            return self.calendar.kind_of(day) is kind
        days = days_of_month(self.calendar, kind, day.year, day.month)
        index = self.rule.nth if self.rule.nth < 0 else self.rule.nth - 1
        return index < len(days) and bool(days) and days[index] == day

    def first_allowed(self, day: date) -> date | None:
        """Return the first day from one on on which the schedule runs; None: none within REACH_DAYS."""
        return self._search(day, _DAY, REACH_DAYS)

    def target(self, day: date) -> date | None:
        """Return the day to which the instants of a day are moved; None: they are skipped."""
        if not self.moves:
            return day if self.allows(day) else None
        step = _DAY if self.rule.otherwise is Otherwise.NEXT else -_DAY
        return self._search(day, step, 1 + SHIFT_DAYS_MAX)

    def sources(self, target: date) -> list[date]:
        """Return the days whose instants are moved to an allowed one, ascending, without itself."""
        if not self.moves:
            return []
        step = -_DAY if self.rule.otherwise is Otherwise.NEXT else _DAY
        days: list[date] = []
        day = _move(target, step)
        while day is not None and len(days) < SHIFT_DAYS_MAX and not self.allows(day):
            days.append(day)
            day = _move(day, step)
        return sorted(days)

    def _search(self, day: date, step: timedelta, days: int) -> date | None:
        at: date | None = day
        for _ in range(days):
            if at is None or self.allows(at):
                return at
            at = _move(at, step)
        return None


def _move(day: date, step: timedelta) -> date | None:
    """Return another day; None beyond the days that there are."""
    try:
        return day + step
    except OverflowError:
        return None


@lru_cache(maxsize=4_096)
def day_rule(calendar: Calendar, rule: EnteredRule) -> DayRule:
    """Return the rule of a calendar; the same object for the same, by which results are cached."""
    return DayRule(calendar, rule)
