"""Cron expressions of six or seven fields.

They are seconds, minutes, hours, day of month, month, day of week and, optionally, the year.
"""

from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta, tzinfo
from typing import Final, Self

from app.clock import SECOND_MS, Millis
from app.domain.schedules.cron.days import DayRule, day_rule, days_in_month, lowest_bit, mask_of
from app.domain.schedules.cron.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    YEAR,
    Field,
    InvalidCronExpression,
    parse_field,
)
from app.domain.schedules.cron.local_time import find_second, first_second_after_gap
from app.domain.text.texts import N_

#: fields from left to right; the last is optional, and text after it is ignored
FIELDS: Final[tuple[Field, ...]] = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK, YEAR)
#: longest accepted expression
MAX_LENGTH: Final = 1000
#: last year of a search, as in the reference, and the fewest years it covers: each combination of a date and
#: a day of the week recurs within 40 years
LAST_SEARCH_YEAR: Final = 2126
SEARCH_YEARS: Final = 50

#: separators of fields, and characters stripped from a field
_SEPARATORS: Final = str.maketrans("\t", " ")
_INVISIBLE: Final = "".join(map(chr, range(ord(" ") + 1)))
_MONTHS_A_YEAR: Final = 12
_ONE_SECOND: Final = timedelta(seconds=1)
#: no search starts later: a local time must fit a datetime
_LAST_START_MS: Final[Millis] = 253_370_764_800_000


def split_fields(text: str) -> list[str]:
    """Return the fields of an expression in upper case. Only blanks and tabs separate them."""
    return [field.strip(_INVISIBLE) for field in text.upper().translate(_SEPARATORS).split(" ") if field]


@dataclass(frozen=True, slots=True)
class CronExpression:
    """Compiled cron expression: bit n of a mask is set if the value n is allowed."""

    text: str
    seconds: int
    minutes: int
    hours: int
    months: int
    days: DayRule
    years: tuple[range, ...]
    #: hour, minute and second of a day's first fire
    first_time: tuple[int, int, int]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an expression such as "0 0/15 9-17 ? * MON-FRI"; raise InvalidCronExpression."""
        if len(text) > MAX_LENGTH:
            raise InvalidCronExpression(
                N_("expression"), f"{text[:40]}…", N_("at most %(limit)s characters", limit=MAX_LENGTH)
            )
        texts = split_fields(text)
        if len(texts) < len(FIELDS) - 1:
            raise InvalidCronExpression(
                N_("expression"), text, N_("5, 6 or 7 fields are needed, got %(count)s", count=len(texts))
            )
        if len(texts) < len(FIELDS):
            texts.append("*")
        second, minute, hour, month_day, month, week_day, year = map(parse_field, FIELDS, texts)
        if month_day.no_value == week_day.no_value:
            raise InvalidCronExpression(
                N_("expression"), text, N_("exactly one of day of month and day of week must be ?")
            )
        masks = mask_of(SECOND, second), mask_of(MINUTE, minute), mask_of(HOUR, hour)
        return cls(
            text,
            *masks,
            months=mask_of(MONTH, month),
            days=day_rule(month_day, week_day),
            years=year.spans,
            first_time=(lowest_bit(masks[2]), lowest_bit(masks[1]), lowest_bit(masks[0])),
        )

    def next_after_ms(self, after_ms: Millis, tz: tzinfo) -> Millis | None:
        """Return the first fire strictly after an instant, in whole seconds; None if there is none in reach.

        A local time that does not exist is left out. One that exists twice fires the second time; a search
        from the first time starts as if from the second.
        """
        if after_ms >= _LAST_START_MS:
            return None
        start = datetime.fromtimestamp(after_ms // SECOND_MS + 1, tz)
        while (wall := self.next_from(start)) is not None:
            second = find_second(wall, tz, fold=1)
            if second is not None:
                return second * SECOND_MS
            start = datetime.fromtimestamp(first_second_after_gap(wall, tz), tz)
        return None

    def next_after(self, local: datetime) -> datetime | None:
        """Return the first matching second strictly after a naive local time, as if each existed once."""
        return self.next_from(local.replace(microsecond=0) + _ONE_SECOND)

    def next_from(self, local: datetime) -> datetime | None:
        """Return the first matching second (naive) that is not before a local time of whole seconds."""
        year, month, day = local.year, local.month, local.day
        time = self._find_time(local.hour, local.minute, local.second)
        if time is None:
            time, day = self.first_time, day + 1
            if day > days_in_month(year, month):
                # A new search starts at the 1st, as in the reference, which matters for "31W".
                (year, month), day = _month_after(year, month), 1
        date = self._find_date(year, month, day)
        if date is None:
            return None
        return datetime(*date, *(time if date == (year, month, day) else self.first_time))

    def _find_time(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        """Return the first allowed time of day from this one on; None if the day has none left."""
        _, first_minute, first_second = self.first_time
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (rest := self.seconds >> second):
                return hour, minute, second + lowest_bit(rest)
            if rest := self.minutes >> minute + 1:
                return hour, minute + 1 + lowest_bit(rest), first_second
        if rest := self.hours >> hour + 1:
            return hour + 1 + lowest_bit(rest), first_minute, first_second
        return None

    def _find_date(self, year: int, month: int, day: int) -> tuple[int, int, int] | None:
        """Return the first allowed date from this one on."""
        last_year = min(max(LAST_SEARCH_YEAR, year + SEARCH_YEARS), MAXYEAR)
        while year <= last_year:
            allowed_day = self.days.day_in(year, month, day)
            if allowed_day is None:
                year, month = _month_after(year, month)
                if day > 1 and self.days.entry_day > days_in_month(year, month):
                    year, month = _month_after(year, month)
            elif not self.months >> month & 1:
                rest = self.months >> month + 1
                year, month = (
                    (year, month + 1 + lowest_bit(rest)) if rest else (year + 1, lowest_bit(self.months))
                )
            elif (allowed_year := self._find_year(year)) == year:
                return year, month, allowed_day
            elif allowed_year is None:
                return None
            else:
                year, month = allowed_year, 1
            day = 1
        return None

    def _find_year(self, year: int) -> int | None:
        """Return the first allowed year from this one on."""
        later = (
            span[max(0, -((span.start - year) // span.step))]
            for span in self.years
            if span and span[-1] >= year
        )
        return min(later, default=None)


def _month_after(year: int, month: int) -> tuple[int, int]:
    return (year, month + 1) if month < _MONTHS_A_YEAR else (year + 1, 1)
