"""Planned hours: scheduled starts per hour, as bars of the next 24 hours and of the minutes of one, and as a
table of a week.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from flask_babel import format_date

from app.clock import MINUTE_MS, SECOND_MS
from app.console.ui.bar_chart import COUNTS, BarChart, Meaning, Slot, bar_chart, short_number
from app.console.ui.filters import number
from app.console.web.language import _, ngettext
from app.domain.lists.heat_levels import FLAT_LEVEL, is_flat, level_bounds, level_of, level_tops
from app.domain.schedules.planned_starts import QUARTER_MS, HourOfDay, Window, hours_of
from app.services.report.planned_load import Clash, PlannedLoad

#: hours drawn as bars, hours and minutes between the labels below them
NEXT_HOURS, TICK_HOURS, TICK_MINUTES = 24, 3, 15
#: quarters, and minutes, in an hour
QUARTERS, MINUTES = 4, 60
#: number of quiet hours listed
QUIET = 3
#: executor groups with a colour of their own
GROUPS = 5
#: kind of the parts of all others
OTHERS = "group-0"
HOURS_A_DAY, DAYS_A_WEEK = 24, 7
#: any Monday
MONDAY = date(2024, 1, 1)


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
        """The count in at most four characters."""
        return short_number(self.starts) if self.starts else "·"


@dataclass(frozen=True, slots=True)
class Day:
    """Row of the table; None for an hour that is past or skipped by a clock change."""

    name: str
    hours: list[Hour | None]


@dataclass(frozen=True, slots=True)
class PlannedHours:
    """Bars of the next hours, table of a week, and the hour whose jobs are listed."""

    chart: BarChart
    days: list[Day]
    selected_hour: Hour
    busiest: Hour
    quiet: list[Hour]
    #: whether all hours have about the same number of starts
    is_even: bool
    #: starts in the next 24 hours
    next_starts: int
    #: level, label
    legend: list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Groups:
    """Executor groups in the charts: kinds of parts by id, titles by kind."""

    kinds: dict[int, str]
    titles: dict[str, str]

    def values(self, counts: Iterable[tuple[int, int]]) -> dict[str, int]:
        """Return kind -> starts, from ids and their starts."""
        sums = Counter[str]()
        for group_id, count in counts:
            sums[self.kinds[group_id]] += count
        return {kind: sums[kind] for kind in self.titles if sums[kind]}

    def label(self, heading: str, values: Mapping[str, int]) -> str:
        """Return the text of a bar: its heading and, of several groups, the starts of each."""
        parts = [f"{self.titles[kind]} {number(count)}" for kind, count in values.items()]
        return " · ".join([heading, *(parts if len(self.titles) > 1 else [])])

    def legend(self, slots: Iterable[Slot]) -> list[Meaning]:
        """Return the groups of a chart; none if there is one only."""
        sums = Counter[str]()
        for slot in slots:
            sums.update(slot.values)
        titles = {kind: title for kind, title in self.titles.items() if sums[kind]}
        entries = [Meaning(kind, title, number(sums[kind])) for kind, title in titles.items()]
        return entries if len(entries) > 1 else []


def groups_of(load: PlannedLoad, titles: Mapping[int, str]) -> Groups:
    """Give the groups with most starts in the next hours a colour of their own."""
    sums = {group_id: sum(starts[:NEXT_HOURS]) for group_id, starts in load.starts.items()}
    group_ids = sorted(sums, key=lambda group_id: (-sums[group_id], group_id))
    kinds = {group_id: f"group-{place}" for place, group_id in enumerate(group_ids[:GROUPS], 1)}
    names = {kind: titles.get(group_id, str(group_id)) for group_id, kind in kinds.items()}
    if len(group_ids) > GROUPS:
        names[OTHERS] = _("Other executors")
    return Groups({group_id: kinds.get(group_id, OTHERS) for group_id in group_ids}, names)


def planned_hours(
    load: PlannedLoad, groups: Groups, zone_name: str, first_quarter: int, *, base: str
) -> PlannedHours:
    """Return bars and table; ``first_quarter`` (quarter hours since 1970) chooses the hour to list.

    If no hour starts with it, the busiest one is listed. ``base`` is the page, with its query.
    """
    clock_hours = hours_of(load.window, zone_name)
    totals = [sum(starts) for starts in zip(*load.starts.values(), strict=True)] or [0] * load.window.hours
    sums = [sum(totals[hour] for hour in at.hours) for at in clock_hours]
    tops, is_even = level_tops(sums), is_flat(sums)
    name_of = day_namer()
    names = {day: name_of(day) for day in {at.day for at in clock_hours}}
    hours = []
    for at, starts in zip(clock_hours, sums, strict=True):
        href = starters_address(base, load.window, at.hours[0])
        level = FLAT_LEVEL if is_even else level_of(starts, tops)
        hours.append(Hour(at, starts, level, _label(at, names[at.day], starts), href))
    soon = hours[:NEXT_HOURS]
    busiest = max(soon, key=lambda hour: hour.starts)
    selected_hour = next(
        (hour for hour in hours if quarter_of(load.window, hour.at.hours[0]) == first_quarter), busiest
    )
    quiet = sorted(soon, key=lambda hour: hour.starts)[:QUIET]
    quiet.sort(key=lambda hour: hour.at.hours)
    return PlannedHours(
        _hours_chart(load, groups, soon, selected_hour),
        _days(hours, names),
        selected_hour,
        busiest,
        quiet,
        is_even,
        sum(hour.starts for hour in soon),
        [(FLAT_LEVEL, range_label(min(sums), max(sums)))] if is_even else _legend(tops, max(sums)),
    )


def _hours_chart(load: PlannedLoad, groups: Groups, hours: list[Hour], selected_hour: Hour) -> BarChart:
    slots = []
    for hour in hours:
        counts = [
            (group_id, sum(starts[number] for number in hour.at.hours))
            for group_id, starts in load.starts.items()
        ]
        values = groups.values(counts)
        tick = hour.clock if hour.at.hour % TICK_HOURS == 0 else ""
        is_current = hour is selected_hour
        above = short_number(hour.starts) if hour.starts else ""
        label = groups.label(hour.label, values)
        slots.append(Slot(values, label, hour.href, above=above, tick=tick, is_current=is_current))
    return bar_chart(slots, groups.legend(slots), COUNTS)


def quarter_of(window: Window, hour: int) -> int:
    """Return the quarter hour since 1970 with which an hour of a window begins."""
    return window.from_ms // QUARTER_MS + hour * QUARTERS


def starters_address(base: str, window: Window, hour: int, minute: int | None = None) -> str:
    """Return the address of the jobs that start in an hour of a window, or in a minute of it."""
    of_minute = f"&minute={minute}" if minute is not None else ""
    return f"{base}hour={quarter_of(window, hour)}{of_minute}#starters"


def minutes_chart(
    groups: Groups,
    hour: Hour,
    starts: Mapping[tuple[int, int], int],
    selected_minute: int | None,
    *,
    window: Window,
    base: str,
) -> BarChart:
    """Return the bars of the minutes of an hour; ``starts`` by minute of the window and group."""
    counts = defaultdict[int, list[tuple[int, int]]](list)
    for (minute, group_id), count in starts.items():
        counts[minute % MINUTES].append((group_id, count))
    slots = []
    for place in range(MINUTES):
        minute = hour.at.hours[0] * MINUTES + place
        values, clock = groups.values(counts[place]), f"{hour.at.hour:02d}:{place:02d}"
        total = sum(values.values())
        heading = clock + " · " + ngettext("%(n)s start", "%(n)s starts", total, n=number(total))
        slots.append(
            Slot(
                values,
                groups.label(heading, values),
                starters_address(base, window, hour.at.hours[0], place) if total else "",
                above=short_number(total) if total else "",
                tick=clock if place % TICK_MINUTES == 0 else "",
                is_current=minute == selected_minute,
            )
        )
    return bar_chart(slots, groups.legend(slots), COUNTS)


def clash_rows(
    clashes: Iterable[Clash], window: Window, titles: Mapping[int, str], zone: ZoneInfo, base: str
) -> list[tuple[str, str, str]]:
    """Return time, sentence and address of the minutes in which several jobs of a group start."""
    rows, name_of = [], day_namer()
    for clash in clashes:
        hour, place = divmod(clash.minute, MINUTES)
        at = datetime.fromtimestamp((window.from_ms + clash.minute * MINUTE_MS) // SECOND_MS, zone)
        sentence = ngettext(
            "%(n)s job of %(group)s",
            "%(n)s jobs of %(group)s",
            clash.jobs,
            n=number(clash.jobs),
            group=titles.get(clash.group_id, str(clash.group_id)),
        )
        address = starters_address(base, window, hour, place)
        rows.append((f"{name_of(at.date())} {at:%H:%M}", sentence, address))
    return rows


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
