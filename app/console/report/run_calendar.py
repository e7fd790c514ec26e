"""Run calendar: the last year as SVG, a square per day, a column per week, Monday on top.

Colour shows the number of runs, a mark failures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from flask import url_for
from flask_babel import format_date
from markupsafe import Markup, escape

from app.clock import Millis
from app.console.report.planned_hours import day_namer, range_label
from app.console.ui.filters import number, reader_zone
from app.console.ui.lists.ranges import write_local
from app.console.web.language import _, ngettext
from app.domain.lists.heat_levels import level_bounds, level_of, level_tops
from app.services.report.dashboard import Chart
from app.services.report.reporting import midnight_ms
from app.store.runs.day_counts import DayCount

WEEKS = 53
DAYS_A_WEEK = 7
#: pixels: square and pitch; space for labels at the left and top. The year fits a window of 1280 pixels
SQUARE, STEP, LEFT, TOP = 15, 17, 44, 20
#: minimum distance of month labels in columns
MONTH_ROOM = 3
#: labelled days of the week
NAMED_DAYS = (0, 2, 4)
#: percentage of failures from which the larger mark is used
MANY_PERCENT = 10


@dataclass(frozen=True, slots=True)
class Label:
    """Label of a month or a day of the week."""

    x: int
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """Day with runs: a row of the table."""

    name: str
    count: DayCount
    href: str


@dataclass(frozen=True, slots=True)
class RunCalendar:
    """The calendar and its table, newest day first."""

    squares: Markup
    labels: list[Label]
    rows: list[Row]
    #: level, label
    legend: list[tuple[int, str]]
    runs: int
    failed: int
    #: sentence if days are missing because their runs are not yet counted by group, else empty
    cut: str
    size: int = SQUARE
    width: int = LEFT + WEEKS * STEP
    height: int = TOP + DAYS_A_WEEK * STEP


def first_day(now_ms: Millis, zone: ZoneInfo) -> date:
    """Return the first Monday of the calendar."""
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    return today - timedelta(days=today.weekday(), weeks=WEEKS - 1)


def run_calendar(
    chart: Chart, first: date, *, now_ms: Millis, zone: ZoneInfo, retention_days: int
) -> RunCalendar:
    """Render the counts; the log holds the runs of the last ``retention_days`` (0: all)."""
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    days = [first + timedelta(days=past) for past in range((today - first).days + 1)]
    count_by_day, name_of = {day.day: day for day in chart.days}, day_namer()
    tops = level_tops(map(_runs, chart.days))
    kept_from = today - timedelta(days=retention_days) if retention_days else first
    squares, rows = [], []
    for place, day in enumerate(days):
        count = count_by_day.get(day.isoformat(), DayCount("", 0, 0, 0))
        href = day_address(day, zone) if _runs(count) and day >= kept_from else ""
        is_known = day.isoformat() > chart.uncounted
        kind = f"level-{level_of(_runs(count), tops)}" if is_known else "unknown"
        summary = _summary(count) if is_known else _("not counted yet")
        label = f"{name_of(day)} · {summary}"
        x, y = LEFT + place // DAYS_A_WEEK * STEP, TOP + day.weekday() * STEP
        squares.append(_square(x, y, kind, _sign(count), escape(label), escape(href)))
        if _runs(count):
            rows.append(Row(name_of(day), count, href))
    cut = _cut_sentence(days, chart.uncounted) if chart.uncounted else ""
    legend = [(level, range_label(low, high)) for level, low, high in level_bounds(tops)]
    runs, failed = sum(_runs(row.count) for row in rows), sum(row.count.failed for row in rows)
    markup = Markup("".join(squares))  # nosec B704  # escaped above
    return RunCalendar(markup, month_and_day_labels(days), rows[::-1], legend, runs, failed, cut)


def _cut_sentence(days: Sequence[date], cut_day: str) -> str:
    counted_days = [day.isoformat() for day in days if day.isoformat() > cut_day]
    if not counted_days:
        return _("Runs of your executor groups on these days have not been counted yet.")
    return _(
        "Runs of your executor groups before %(day)s have not been counted yet.",
        day=counted_days[0],
    )


def _square(x: int, y: int, kind: str, sign: str, label: Markup, href: Markup) -> str:
    """Render a day, a link while the log holds its runs. Not a macro: there are 371."""
    link = f'href="{href}"' if href else f'role="img" aria-label="{label}"'
    shapes = f'<rect class="day {kind}" x="{x}" y="{y}" width="{SQUARE}" height="{SQUARE}" rx="2"/>'
    if sign == "some":
        shapes += f'<circle class="flaw {kind}" cx="{x + 7.5}" cy="{y + 7.5}" r="2.5"/>'
    elif sign == "many":
        shapes += f'<path class="flaw {kind}" d="M{x + 3.5} {y + 3.5}l8 8m0 -8l-8 8"/>'
    return f"<a {link}><title>{label}</title>{shapes}</a>"


def _runs(count: DayCount) -> int:
    return count.success + count.failed + count.running


def _sign(count: DayCount) -> str:
    """Return the failure mark of a day."""
    if not count.failed:
        return ""
    return "many" if count.failed * 100 >= MANY_PERCENT * (count.success + count.failed) else "some"


def _summary(count: DayCount) -> str:
    runs = _runs(count)
    if not runs:
        return _("no run")
    parts = [ngettext("%(n)s run", "%(n)s runs", runs, n=number(runs))]
    parts += [_("%(n)s failed", n=number(count.failed))] if count.failed else []
    parts += [_("%(n)s running", n=number(count.running))] if count.running else []
    return " · ".join(parts)


def day_address(day: date, zone: ZoneInfo) -> str:
    """Return the URL of the runs of a day, converted to the reader's zone."""
    noon_ms = int(datetime(day.year, day.month, day.day, 12, tzinfo=zone).timestamp()) * 1000
    bounds = midnight_ms(noon_ms, zone.key), midnight_ms(noon_ms, zone.key, -1) - 1
    start, end = (write_local(ms, reader_zone()).replace(" ", "T") for ms in bounds)
    return f"{url_for('logs.index')}?range=custom&from={start}&to={end}"


def month_and_day_labels(days: Sequence[date]) -> list[Label]:
    """Return the labels of months and days."""
    labels = [
        Label(0, TOP + row * STEP + SQUARE - 3, format_date(days[row], "EEE"))
        for row in NAMED_DAYS
        if row < len(days)
    ]
    last = -MONTH_ROOM
    # The rest of a month gives way to the next one.
    soon = any(
        monday.day <= DAYS_A_WEEK for monday in days[DAYS_A_WEEK : MONTH_ROOM * DAYS_A_WEEK : DAYS_A_WEEK]
    )
    for place in range(0, len(days), DAYS_A_WEEK):
        week, monday = place // DAYS_A_WEEK, days[place]
        is_start = monday.day <= DAYS_A_WEEK or (place == 0 and not soon)
        if is_start and week - last >= MONTH_ROOM and week < WEEKS - 1:
            labels.append(Label(LEFT + week * STEP, TOP - 7, format_date(monday, "MMM")))
            last = week
    return labels
