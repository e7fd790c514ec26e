"""Month of the completeness page: a cell for each day, which narrows the page to that day."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from flask_babel import format_date, get_locale

from app.console.report.completeness.period import Query, neighbour_month
from app.console.ui.completeness import flaws_of
from app.console.ui.filters import comma_list, number
from app.console.web.language import _
from app.domain.completeness.days import day_of, interval_of
from app.domain.completeness.equation import Tally
from app.services.completeness.overview import Overview

WEEK = 7
#: a Monday
MONDAY = date(2024, 1, 1)
#: kind of a day -> icon; each kind has its own shape
ICONS = {
    "complete": "check-circle-fill",
    "some": "slash-circle-fill",
    "wrong": "x-circle-fill",
    "idle": "dash",
    "unknown": "question-circle",
    "future": "",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A day of the month."""

    day: int
    kind: str
    icon: str
    #: instants that were expected; empty: not known
    count_text: str
    #: number and name of what is wrong or was skipped, short; empty: nothing
    flaw: str
    #: the day in words
    label: str
    href: str
    is_sealed: bool
    is_chosen: bool
    is_today: bool


@dataclass(frozen=True, slots=True)
class Month:
    """The calendar."""

    title: str
    weekdays: list[str]
    #: None: of another month
    weeks: list[list[Cell | None]]
    before_href: str
    after_href: str
    #: URL of the whole month
    href: str


def month_of(query: Query, overview: Overview, zone: ZoneInfo) -> Month:
    """Return the calendar of the month that is asked for."""
    first, length = query.month, monthrange(query.month.year, query.month.month)[1]
    cells: list[Cell | None] = [None] * first.weekday()
    cells += [_cell(first + timedelta(days=past), query, overview, zone) for past in range(length)]
    cells += [None] * (-len(cells) % WEEK)
    return Month(
        month_title(first),
        [format_date(MONDAY + timedelta(days=day), "EEE") for day in range(WEEK)],
        [cells[start : start + WEEK] for start in range(0, len(cells), WEEK)],
        _month_href(query, neighbour_month(first, -1)),
        _month_href(query, neighbour_month(first, 1)) if first < query.today.replace(day=1) else "",
        _month_href(query, first),
    )


def month_title(month: date) -> str:
    """Return ``November 2026`` in the reader's language."""
    locale = get_locale()
    assert locale is not None, "a page has a language"
    return str(format_date(month, locale.datetime_skeletons["yMMMM"].pattern))


def _month_href(query: Query, month: date | None) -> str:
    if month is None:
        return ""
    return query.address(**{"from": None, "to": None, "month": f"{month:%Y-%m}"})


def _cell(day: date, query: Query, overview: Overview, zone: ZoneInfo) -> Cell:
    name = day.isoformat()
    tally = overview.days.get(name, Tally())
    kind = _kind(day, tally, query.today, overview, zone)
    summary = summary_of(tally, kind)
    is_sealed = name in overview.sealed_ms_by_day
    is_known = kind not in ("unknown", "future")
    return Cell(
        day.day,
        kind,
        ICONS[kind],
        number(tally.expected) if is_known else "",
        _flaw(tally) if is_known else "",
        f"{format_date(day, 'medium')}: {comma_list([summary, *([_('sealed')] if is_sealed else [])])}",
        query.address(**{"month": None, "from": name, "to": name}) if kind != "future" else "",
        is_sealed,
        not query.is_month and query.period.has(name),
        day == query.today,
    )


def _kind(day: date, tally: Tally, today: date, overview: Overview, zone: ZoneInfo) -> str:
    if day > today:
        return "future"
    if not tally.is_complete:
        return "wrong"
    if tally.expected:
        return "some" if tally.not_started or tally.skipped else "complete"
    is_known = overview.first_ms is not None and day >= day_of(overview.first_ms, zone)
    is_counted = interval_of(day, zone).from_ms < overview.until_ms
    return "idle" if is_known and is_counted and not tally.unknown else "unknown"


def _flaw(tally: Tally) -> str:
    wrong = tally.unexplained + tally.unexpected
    missing = tally.not_started.total() + tally.skipped.total()
    return number(wrong or missing) if wrong or missing else ""


def summary_of(tally: Tally, kind: str) -> str:
    """Return a day in words: ``4,320 expected, 12 skipped``."""
    if kind == "future":
        return _("still to come")
    if kind == "unknown":
        return _("not known")
    if kind == "idle":
        return _("nothing was due")
    return comma_list([_("%(n)s expected", n=number(tally.expected)), *flaws_of(tally)])
