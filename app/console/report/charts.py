"""Charts of the dashboard, as SVG: a bar of runs for each day, and the share of each result as a ring.

Horizontal positions are percentages, so that the bars fit any width.
"""

from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

from app.console.report.run_calendar import day_address
from app.console.ui.filters import number
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.services.report.dashboard import Chart
from app.store.runs.day_counts import DayCount

#: results from the bottom of a bar to its top
RESULTS = {"success": _l("Succeeded"), "failed": _l("Failed"), "running": _l("Running")}
#: pixels: the highest bar; room above it for a number, and below for the day
AREA, TOP, BOTTOM = 150, 16, 20
#: pixels of a part of a bar that has runs
LEAST = 2
#: share of its slot that a bar fills; widest bar in percent
BAR_SHARE, WIDEST = 0.68, 8
#: most days that are named below, and most bars that carry their number of failures
NAMED, NUMBERED = 8, 31
#: steps between lines, at most so many lines
STEPS, LINES = (1, 2, 5), 4


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a bar: the runs of one result."""

    result: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of one day; horizontal positions in percent."""

    slot_x: str
    x: str
    middle: str
    parts: list[Part]
    #: number of failures and where it stands; empty for none
    failed: str
    failed_y: float
    #: shown below
    day: str
    #: ``2024-05-01 · 12 succeeded · 1 failed``
    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Line:
    """Line of the scale."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Slice:
    """Share of one result; lengths in percent of the ring."""

    result: str
    label: str
    count: int
    percent: str
    length: str
    #: length before it, negative: the dash offset
    offset: str


@dataclass(frozen=True, slots=True)
class Charts:
    """Bars and ring."""

    bars: list[Bar]
    lines: list[Line]
    slices: list[Slice]
    slot_width: str
    bar_width: str
    #: share of the finished runs that succeeded: ``97.2%``; empty without one
    rate: str
    height: int = TOP + AREA + BOTTOM
    ground: int = TOP + AREA


def charts_of(chart: Chart, zone: ZoneInfo) -> Charts | None:
    """Return the drawn charts; None without runs."""
    highest = max((_total(day) for day in chart.days), default=0)
    if not highest:
        return None
    step = _step(highest)
    top = max(highest, step)
    slot = 100 / len(chart.days)
    width = min(slot * BAR_SHARE, WIDEST)
    every = -(-len(chart.days) // NAMED)
    bars = []
    for place, day in enumerate(chart.days):
        middle = (place + 0.5) * slot
        parts = _parts(day, top)
        is_labelled = (len(chart.days) - 1 - place) % every == 0
        bars.append(
            Bar(
                f"{place * slot:.2f}%",
                f"{middle - width / 2:.2f}%",
                f"{middle:.2f}%",
                parts,
                number(day.failed) if day.failed and len(chart.days) <= NUMBERED else "",
                min((part.y for part in parts), default=TOP) - 4,
                day.day[5:] if is_labelled else "",
                _label(day),
                day_address(date.fromisoformat(day.day), zone) if _total(day) else "",
            )
        )
    lines = [Line(TOP + AREA * (1 - at / top), number(at)) for at in range(step, top + 1, step)]
    return Charts(bars, lines, _slices(chart), f"{slot:.2f}%", f"{width:.2f}%", _rate(chart))


def _parts(day: DayCount, top: int) -> list[Part]:
    parts, ground = [], float(TOP + AREA)
    for result in RESULTS:
        count = getattr(day, result)
        if count:
            height = round(max(LEAST, AREA * count / top), 1)
            ground = round(ground - height, 1)
            parts.append(Part(result, ground, height))
    return parts


def _label(day: DayCount) -> str:
    counts = [
        (_("%(n)s succeeded"), day.success),
        (_("%(n)s failed"), day.failed),
        (_("%(n)s running"), day.running),
    ]
    return " · ".join([day.day, *(text % {"n": number(count)} for text, count in counts if count)])


def _slices(chart: Chart) -> list[Slice]:
    slices, before = [], 0.0
    for result, label in RESULTS.items():
        count = getattr(chart, result)
        share = 100 * count / chart.total
        slices.append(Slice(result, str(label), count, f"{share:.1f}%", f"{share:.2f}", f"{-before:.2f}"))
        before += share
    return slices


def _rate(chart: Chart) -> str:
    """Return the share of successes: 100% only if nothing failed."""
    finished = chart.success + chart.failed
    if not finished:
        return ""
    rate = 100 * chart.success / finished
    return f"{min(rate, 99.9) if chart.failed else rate:.1f}%"


def _step(highest: int) -> int:
    """Return the round distance of at most LINES lines: 1, 2, 5, 10, 20 …"""
    size = 1
    while True:
        for step in STEPS:
            if highest <= LINES * step * size:
                return step * size
        size *= 10


def _total(day: DayCount) -> int:
    return day.success + day.failed + day.running
