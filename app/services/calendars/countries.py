"""Public holidays of countries, with make-up workdays, out of the library ``holidays``.

The library is imported when days are first read: no process needs it to start.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from app.domain.calendars.calendar import DayKind
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.calendars.days import CountryDays

if TYPE_CHECKING:
    from holidays import HolidayBase

#: Countries whose government announces a schedule each year, which moves workdays to weekends. For a year
#: after the last one announced the library still answers: with the holidays of the law alone.
ANNOUNCED = frozenset({"AZ", "BY", "CN", "HU", "KG", "KZ", "LV", "MM", "RU", "UZ", "VN"})
#: of these, the ones that announce blocks of days off, weekends among them
BLOCKS = frozenset({"CN"})
#: years that are looked at: laws change, and the library's tables of lunar calendars end
FIRST_YEAR = 2001
LAST_YEAR = 2035
#: the library's, between the names of two holidays of one day
BETWEEN_NAMES = "; "
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Schedule:
    """Days of one country, and the blocks of days off that they make with weekends."""

    weekend: frozenset[int]
    holidays: dict[date, str]
    #: holidays with a name of their own, unlike days off that are made up for
    own_names: dict[date, str]
    #: make-up workday -> the day off it is worked for, if the library names it
    made_up: dict[date, date | None]

    def is_off(self, day: date) -> bool:
        """Return whether there is no work on a day."""
        return day in self.holidays or (day.isoweekday() in self.weekend and day not in self.made_up)

    def block(self, day: date) -> Iterator[date]:
        """Yield the days off without a workday between them and this one, which is the first."""
        yield day
        for step in (-DAY, DAY):
            other = day + step
            while self.is_off(other):
                yield other
                other += step

    def name(self, day: date) -> str:
        """Return the name of a day off: its own, else the most frequent one of its block."""
        if day in self.own_names:
            return self.own_names[day]
        names = [self.own_names[other] for other in sorted(self.block(day)) if other in self.own_names]
        counts = Counter(name for both in names for name in both.split(BETWEEN_NAMES))
        return counts.most_common(1)[0][0] if counts else self.holidays.get(day, "")


def known_countries() -> list[tuple[str, str]]:
    """Return code and English name of each country, ordered by name."""
    from holidays.registry import COUNTRIES

    pairs = [(code, _english_name(title)) for title, code, *_ in COUNTRIES.values()]
    return sorted(pairs, key=lambda pair: pair[1])


@cache
def known_years(country: str) -> tuple[int, int] | None:
    """Return the first and the last year whose days are certain; None: there is no such year.

    Days of calendars that follow sightings of the moon are estimates until they are announced.
    """
    if _check(country)[0] in ANNOUNCED:
        years = [off.year for _, off in _moves(_table(country, ())) if off.year >= FIRST_YEAR]
        return min(years), max(years)
    certain: tuple[int, int] | None = None
    table = _table(country, ())
    marks = {option: True for option in table.get_supported_options() if option.endswith("_show_estimated")}
    for year in range(max(FIRST_YEAR, table.start_year), min(LAST_YEAR, table.end_year) + 1):
        names = _table(country, (year,), language="en_US", **marks).values()
        if names and not any("estimated" in name.lower() for name in names):
            certain = (certain[0] if certain and certain[1] == year - 1 else year, year)
    return certain


def country_days(country: str, years: Sequence[int]) -> CountryDays:
    """Return the holidays and make-up workdays of a country, or of a part of it such as ``DE-BY``.

    Holidays are those of everybody by law, and the days on which they are observed instead. Raise
    ``InvalidInput`` for ``country`` if it is unknown, for ``years`` if the days of one are not certain.
    """
    code, _ = _check(country)
    span = _checked_years(country, years)
    schedule = _schedule(country, span)
    off = set(schedule.holidays)
    if code in BLOCKS:
        off |= {day for holiday in schedule.holidays for day in schedule.block(holiday) if day.year in span}
    names = {day: schedule.name(day) for day in sorted(off)}
    for workday, free in schedule.made_up.items():
        names[workday] = schedule.name(free) if free else ""
    days = {day: DayKind.HOLIDAY if day in off else DayKind.WORKDAY for day in sorted(names)}
    return CountryDays(
        days=days,
        names={day: names[day] for day in days if names[day]},
        weekend=schedule.weekend,
        valid_until=date(span[-1], 12, 31),
    )


def _schedule(country: str, span: Sequence[int]) -> _Schedule:
    """Return the days of some years as the library has them."""
    table = _table(country, span)
    holidays = {day: name for day, name in table.items() if day.year in span}
    moves = dict(_moves(table))
    moved_days = set(moves.values())
    own_names = {day: name for day, name in holidays.items() if day not in moved_days}
    if _check(country)[0] in BLOCKS:
        law = _table(country, span, observed=False)
        own_names = {day: name for day, name in own_names.items() if day in law}
    last = date(span[-1], 12, 31)
    return _Schedule(
        weekend=frozenset(
            day.isoweekday() for day in (last - DAY * n for n in range(7)) if table.is_weekend(day)
        ),
        holidays=holidays,
        own_names=own_names,
        made_up={
            day: moves.get(day)
            for day in sorted(table.weekend_workdays)
            if day.year in span and day not in holidays
        },
    )


def _moves(table: "HolidayBase") -> Iterator[tuple[date, date]]:
    """Yield each day that the library says is worked, and the day off that it is worked for."""
    specials: dict[int, Any] = getattr(table, "special_public_holidays", {})
    for year, entries in specials.items():
        # One entry stands for itself; (month, day, name) is an additional holiday.
        for entry in entries if isinstance(entries[0], tuple) else (entries,):
            if len(entry) > 3:
                month, day, made_month, made_day, *made_year = entry
                yield date(made_year[0] if made_year else year, made_month, made_day), date(year, month, day)


def _table(country: str, years: Sequence[int], **options: Any) -> "HolidayBase":
    """Return the library's table, with names in the country's language."""
    import holidays

    code, part = _check(country)
    language = getattr(holidays, code).default_language
    return holidays.country_holidays(code, subdiv=part, years=years, **{"language": language} | options)


def _check(country: str) -> tuple[str, str | None]:
    """Return the code of a country, and of its part or None; raise ``InvalidInput``."""
    import holidays
    from holidays.registry import COUNTRIES

    code, dash, part = country.strip().partition("-")
    code = code.upper()
    if code not in {value for _, value, *_ in COUNTRIES.values()}:
        problem = N_(
            "Unknown country %(country)s; give its two letters, such as CN, or import a file", country=country
        )
        raise InvalidInput("country", problem)
    if not dash:
        return code, None
    parts = {value.upper(): value for value in getattr(holidays, code).subdivisions}
    if part.upper() not in parts:
        choices = ", ".join(f"{code}-{value}" for value in parts.values()) or code
        raise InvalidInput(
            "country", N_("Unknown part %(country)s; known are %(parts)s", country=country, parts=choices)
        )
    return code, parts[part.upper()]


def _checked_years(country: str, years: Sequence[int]) -> list[int]:
    """Return the years in order; raise ``InvalidInput`` for a gap and for a year that is not certain."""
    span = sorted(set(years))
    if not span or span[-1] - span[0] >= len(span):
        raise InvalidInput("years", N_("Give one year or several that follow each other, such as 2026, 2027"))
    year_range = known_years(country)
    if year_range is None:
        problem = N_("The holidays of %(country)s are estimates in each year; import a file", country=country)
        raise InvalidInput("years", problem)
    first, last = year_range
    for year in span:
        if not first <= year <= last:
            raise InvalidInput(
                "years",
                N_(
                    "The days of %(country)s are not known for %(year)s, only for %(first)s to %(last)s;"
                    " update the program once they are announced, or import a file",
                    country=country,
                    year=year,
                    first=first,
                    last=last,
                ),
            )
    return span


def _english_name(title: str) -> str:
    """Return the name of ``"IsleOfMan"``: Isle of Man."""
    words = re.findall(r"DR|Mc[A-Z][a-z]+|[A-Z][a-z]+", title)
    return " ".join(
        word.lower() if n and word in ("And", "Of", "The") else word for n, word in enumerate(words)
    )
