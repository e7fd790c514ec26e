"""Year view of a calendar: twelve months of days, and the days that are something else than their weekday."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from flask_babel import format_date, get_locale

from app.console.ui.calendars.words import weekday_names
from app.console.web.language import _, lazy_pgettext
from app.domain.calendars.calendar import Calendar, DayKind

#: years that a page shows
FIRST_YEAR, LAST_YEAR = 1970, 2100
_DAY = timedelta(days=1)
_SIGNS = {"holiday": lazy_pgettext("day", "off"), "workday": lazy_pgettext("day", "work")}


@dataclass(frozen=True, slots=True)
class JobMark:
    """What becomes of the instants of a job on a day: a kind of style, and a sentence."""

    kind: str
    text: str
    #: whether it runs on this day
    runs: bool = False


@dataclass(frozen=True, slots=True)
class DayCell:
    """A day of a month."""

    day: date
    #: what the calendar says of it: ``holiday`` or ``workday``; empty: it is as its weekday says
    own: str
    is_free: bool
    is_weekend: bool
    #: it is later than the last day that the calendar knows
    is_unknown: bool
    is_today: bool
    #: name of the day, such as 国庆节
    name: str
    #: the date in words
    long: str
    #: "October 1, 2026 · holiday · 国庆节"
    title: str
    mark: JobMark | None = None

    @property
    def sign(self) -> str:
        """Return the short word of a day of its own: 休 or 班."""
        return kind_sign(self.own) if self.own else ""


@dataclass(frozen=True, slots=True)
class Month:
    """A month: weeks from Monday to Sunday, with None where other months are."""

    number: int
    title: str
    weeks: list[list[DayCell | None]]


@dataclass(frozen=True, slots=True)
class ListedDay:
    """A day of its own in the list below the months."""

    day: date
    kind: str
    name: str
    weekday: str

    @property
    def sign(self) -> str:
        """Return its kind as short as it stands in a month."""
        return kind_sign(self.kind)


@dataclass(frozen=True, slots=True)
class YearView:
    """A calendar in one year."""

    year: int
    months: list[Month]
    #: short name, name
    weekdays: list[tuple[str, str]]
    #: days of their own, ascending
    days: list[ListedDay]
    workdays: int
    free_days: int


def year_view(
    calendar: Calendar, year: int, *, today: date, marks: Mapping[date, JobMark] | None = None
) -> YearView:
    """Return the year of a calendar; ``marks`` are those of a job by day."""
    cells = {day: _cell(calendar, day, today, (marks or {}).get(day)) for day in _days_of(year)}
    free = sum(cell.is_free for cell in cells.values())
    own = [
        ListedDay(cell.day, cell.own, cell.name, format_date(cell.day, "EEE"))
        for cell in cells.values()
        if cell.own
    ]
    return YearView(year, _months(year, cells), weekday_names(), own, len(cells) - free, free)


def country_names(countries: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return codes and names of countries in the reader's language, where it has one."""
    locale = get_locale()
    territories = locale.territories if locale is not None else {}
    return [(code, territories.get(code, name)) for code, name in countries]


def kind_word(kind: str) -> str:
    """Return what a day is, as a word."""
    return {"holiday": _("holiday"), "workday": _("workday")}.get(kind, "")


def kind_sign(kind: str) -> str:
    """Return what a day of its own is, as short as it stands in a month."""
    return str(_SIGNS.get(kind, ""))


def days_text(calendar: Calendar, year: int) -> str:
    """Return the days of their own of a year as lines: ``2026-10-01,holiday,国庆节``."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for day in sorted(day for day in calendar.days if day.year == year):
        name = calendar.names.get(day, "")
        writer.writerow([day.isoformat(), calendar.days[day].value, *([name] if name else [])])
    return text.getvalue()


def count_days(calendar: Calendar, year: int) -> tuple[int, int]:
    """Return the workdays of a year, and the make-up workdays among them."""
    days = _days_of(year)
    workdays = sum(calendar.kind_of(day) is DayKind.WORKDAY for day in days)
    return workdays, sum(calendar.is_makeup(day) for day in days)


def _days_of(year: int) -> list[date]:
    first = date(year, 1, 1)
    return [first + number * _DAY for number in range((date(year, 12, 31) - first).days + 1)]


def _cell(calendar: Calendar, day: date, today: date, mark: JobMark | None) -> DayCell:
    own = calendar.days.get(day)
    name, is_free = calendar.names.get(day, ""), calendar.kind_of(day) is DayKind.HOLIDAY
    kind = kind_word(DayKind.HOLIDAY if is_free else DayKind.WORKDAY)
    words = [format_date(day, "long"), kind, name, mark.text if mark else ""]
    if not calendar.is_known(day):
        words.insert(2, _("not known yet"))
    return DayCell(
        day,
        own.value if own is not None else "",
        is_free,
        day.isoweekday() in calendar.weekend,
        not calendar.is_known(day) and own is None,
        day == today,
        name,
        words[0],
        " · ".join(word for word in words if word),
        mark,
    )


def _months(year: int, cells: Mapping[date, DayCell]) -> list[Month]:
    months = list[Month]()
    for number in range(1, 13):
        first = date(year, number, 1)
        days: Sequence[DayCell] = [cell for day, cell in cells.items() if day.month == number]
        places: list[DayCell | None] = [None] * (first.isoweekday() - 1) + list(days)
        places += [None] * (-len(places) % 7)
        weeks = [places[at : at + 7] for at in range(0, len(places), 7)]
        months.append(Month(number, format_date(first, "MMMM"), weeks))
    return months
