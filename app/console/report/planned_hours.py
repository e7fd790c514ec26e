"""Planned hours: scheduled starts per hour, as SVG bars of the next 24 hours and a table of a week."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from flask import url_for
from flask_babel import format_date

from app.console.ui.filters import number
from app.console.web.language import _, ngettext
from app.domain.lists.heat_levels import FLAT_LEVEL, is_flat, level_bounds, level_of, level_tops
from app.domain.schedules.planned_starts import QUARTER_MS, HourOfDay, hours_of
from app.services.report.planned_load import PlannedLoad

#: hours drawn as bars, and hours between the time labels below them
NEXT_HOURS, TICK_HOURS = 24, 3
#: quarters in an hour
QUARTERS = 4
#: pixels: the highest bar, the lowest one above zero, the labels below
AREA_HEIGHT, LEAST_HEIGHT, LABEL_HEIGHT = 110, 2, 20
#: share of its slot that a bar fills
BAR_SHARE = 0.72
#: number of quiet hours listed
QUIET = 3
HOURS_A_DAY, DAYS_A_WEEK = 24, 7
#: any Monday
MONDAY = date(2024, 1, 1)
THOUSAND, MILLION = 1_000, 1_000_000
#: smaller counts are shown with one decimal; 10.0k would take a fifth character
SHORT = 9.95


@dataclass(frozen=True, slots=True)
class Hour:
    """Hour of the reader's clock, with the number of runs that start in it."""

    at: HourOfDay
    starts: int
    level: int
    #: ``Sat 2026-11-21 14:00 · 12 starts``
    label: str
    href: str

    @property
    def clock(self) -> str:
        """``14:00``."""
        return f"{self.at.hour:02d}:00"

    @property
    def short(self) -> str:
        """The count in at most four characters: ``850``, ``1.2k``, ``36k``, ``1.2M``."""
        for unit, letter in ((MILLION, "M"), (THOUSAND, "k")):
            if self.starts >= unit:
                count = self.starts / unit
                return f"{count:.1f}{letter}" if count < SHORT else f"{count:.0f}{letter}"
        return str(self.starts) if self.starts else "·"


@dataclass(frozen=True, slots=True)
class HourBar:
    """Bar of one of the next 24 hours; positions are percentages of the width."""

    hour: Hour
    x: str
    slot_x: str
    middle: str
    y: int
    height: int
    tick: str


@dataclass(frozen=True, slots=True)
class Day:
    """Row of the table; None for an hour that is past or skipped by a clock change."""

    name: str
    hours: list[Hour | None]


@dataclass(frozen=True, slots=True)
class PlannedHours:
    """Bars and table, and the hour whose jobs are listed."""

    bars: list[HourBar]
    days: list[Day]
    selected_hour: Hour
    busiest: Hour
    quiet: list[Hour]
    #: whether all hours have about the same number of starts
    is_even: bool
    #: level, label
    legend: list[tuple[int, str]]
    bar_width: str
    slot_width: str
    height: int = AREA_HEIGHT
    whole_height: int = AREA_HEIGHT + LABEL_HEIGHT

    @property
    def next_starts(self) -> int:
        """Number of starts in the next 24 hours."""
        return sum(bar.hour.starts for bar in self.bars)


def planned_hours(load: PlannedLoad, zone_name: str, first_quarter: int) -> PlannedHours:
    """Return bars and table; ``first_quarter`` (quarter hours since 1970) chooses the hour to list.

    If no hour starts with it, the busiest one is listed.
    """
    clock_hours = hours_of(load.window, zone_name)
    sums = [sum(load.starts[hour] for hour in at.hours) for at in clock_hours]
    tops, first, is_even = level_tops(sums), load.window.from_ms // QUARTER_MS, is_flat(sums)
    name_of = day_namer()
    base, names = url_for("load.index"), {day: name_of(day) for day in {at.day for at in clock_hours}}
    hours = []
    for at, starts in zip(clock_hours, sums, strict=True):
        href = f"{base}?hour={first + at.hours[0] * QUARTERS}#starters"
        level = FLAT_LEVEL if is_even else level_of(starts, tops)
        hours.append(Hour(at, starts, level, _label(at, names[at.day], starts), href))
    soon = hours[:NEXT_HOURS]
    busiest = max(soon, key=lambda hour: hour.starts)
    selected_hour = next(
        (hour for hour in hours if first + hour.at.hours[0] * QUARTERS == first_quarter), busiest
    )
    quiet = sorted(soon, key=lambda hour: hour.starts)[:QUIET]
    quiet.sort(key=lambda hour: hour.at.hours)
    step = 100 / len(soon)
    return PlannedHours(
        _bars(soon, step),
        _days(hours, names),
        selected_hour,
        busiest,
        quiet,
        is_even,
        [(FLAT_LEVEL, range_label(min(sums), max(sums)))] if is_even else _legend(tops, max(sums)),
        f"{step * BAR_SHARE:.2f}%",
        f"{step:.2f}%",
    )


def _legend(tops: tuple[int, ...], highest: int) -> list[tuple[int, str]]:
    levels = [(level, range_label(low, high)) for level, low, high in level_bounds(tops) if highest >= low]
    return [(0, number(0)), *levels]


def day_namer() -> Callable[[date], str]:
    """Return a function that names days in the reader's language: ``Sat 2026-11-21``."""
    weekdays = [format_date(MONDAY + timedelta(days=day), "EEE") for day in range(DAYS_A_WEEK)]
    return lambda day: f"{weekdays[day.weekday()]} {day.isoformat()}"


def _label(at: HourOfDay, day: str, starts: int) -> str:
    text = f"{day} {at.hour:02d}:00 · " + ngettext("%(n)s start", "%(n)s starts", starts, n=number(starts))
    return text + " · " + _("this hour occurs twice (clock change)") if len(at.hours) > 1 else text


def _bars(hours: list[Hour], step: float) -> list[HourBar]:
    highest = max(hour.starts for hour in hours)
    bars = []
    for place, hour in enumerate(hours):
        height = max(LEAST_HEIGHT, round(AREA_HEIGHT * hour.starts / highest)) if hour.starts else 0
        x, slot_x, middle = (
            f"{step * share:.2f}%" for share in (place + (1 - BAR_SHARE) / 2, place, place + 0.5)
        )
        tick = hour.clock if hour.at.hour % TICK_HOURS == 0 else ""
        bars.append(HourBar(hour, x, slot_x, middle, AREA_HEIGHT - height, height, tick))
    return bars


def _days(hours: list[Hour], names: dict[date, str]) -> list[Day]:
    hours_by_clock = {(hour.at.day, hour.at.hour): hour for hour in hours}
    first, last = hours[0].at.day, hours[-1].at.day
    days = (first + timedelta(days=past) for past in range((last - first).days + 1))
    return [Day(names[day], [hours_by_clock.get((day, hour)) for hour in range(HOURS_A_DAY)]) for day in days]


def range_label(low: int, high: int | None) -> str:
    """``1 – 850``, ``2,551 and more``."""
    if high is None:
        return _("%(n)s and more", n=number(low))
    return number(low) if low == high else f"{number(low)} – {number(high)}"
