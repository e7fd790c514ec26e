"""Bar chart: bars of one or more parts over a base line, a scale of at most four lines, a legend.

Horizontal positions are percentages, so that a chart fits any width; vertical ones are pixels. The template
is macros/charts.html; js/charts.js adds the card of a bar, the arrow keys, and the legend that filters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.console.ui.filters import duration, number
from app.console.web.language import _

#: pixels: the highest bar; room above it for a number, and below for the labels
AREA, TOP, BOTTOM = 140, 18, 22
#: pixels of a part of a bar, however small its value
LEAST = 2
#: share of its slot that a bar fills; widest bar in percent
BAR_SHARE, WIDEST = 0.68, 6
#: steps between lines, at most so many lines
STEPS, LINES = (1, 2, 5), 4
#: characters above all bars that have room on a phone
CHARACTERS = 30
#: round durations between lines, up to half a day
DURATION_STEPS: tuple[Millis, ...] = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(SECOND_MS * seconds for seconds in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_MS * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * hours for hours in (1, 2, 6, 12)),
)
THOUSAND, MILLION = 1_000, 1_000_000
#: smaller counts are shown with one decimal; 10.0k would take a fifth character
SHORT = 9.95


@dataclass(frozen=True, slots=True)
class Slot:
    """Place on the axis: what its bar shows."""

    #: kind -> value, from the bottom of the bar to its top
    values: Mapping[str, int]
    #: heading and lines of the card: ``2024-05-01 · 12 succeeded · 1 failed``
    label: str
    href: str = ""
    #: text above the bar, and below the axis
    above: str = ""
    tick: str = ""
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a bar."""

    kind: str
    value: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of a slot; horizontal positions in percent."""

    slot: Slot
    slot_x: str
    x: str
    middle: str
    parts: list[Part]
    #: where the text above it stands
    above_y: float
    #: whether its label below has room on a wide screen only
    is_minor: bool


@dataclass(frozen=True, slots=True)
class Line:
    """Line of a scale."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """Legend entry: a kind of part, its sign above a bar, and how much of it there is."""

    kind: str
    label: str
    amount: str = ""
    sign: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Shares of the slots in percent, joined by lines, with a scale on the right."""

    #: from x, y to x, y
    segments: list[tuple[str, float, str, float]]
    points: list[tuple[str, float]]
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars, scale and legend."""

    bars: list[Bar]
    lines: list[Line]
    legend: list[Meaning]
    slot_width: str
    bar_width: str
    #: value at the upper edge; 0 if no bar has one
    top: int
    curve: Curve | None = None
    #: whether js/charts.js draws the bars anew, as high as there is room, when the legend hides a kind
    is_stacked: bool = True
    area: int = AREA
    ground: int = TOP + AREA
    height: int = TOP + AREA + BOTTOM

    @property
    def is_crowded(self) -> bool:
        """Whether the numbers above the bars have room on a wide screen only."""
        return self.is_stacked and sum(len(bar.slot.above) for bar in self.bars) > CHARACTERS


@dataclass(frozen=True, slots=True)
class Scale:
    """Distance of lines for a highest value, and the text of a value."""

    step: Callable[[int], int]
    text: Callable[[int], str]


def bar_chart(
    slots: Sequence[Slot],
    legend: Sequence[Meaning],
    scale: Scale,
    *,
    rates: Sequence[float | None] = (),
    places: int = 0,
    is_stacked: bool = True,
) -> BarChart:
    """Return the chart of these slots, with room for ``places`` of them if they are fewer.

    ``rates`` are percentages, one for each slot; None where there is none.
    """
    highest = max((sum(slot.values.values()) for slot in slots), default=0)
    step = scale.step(highest) if highest else 0
    top = max(highest, step)
    width = 100 / max(len(slots), places, 1)
    bar_width = min(width * BAR_SHARE, WIDEST)
    bars, ticks = [], 0
    for place, slot in enumerate(slots):
        ticks += bool(slot.tick)
        middle, parts = (place + 0.5) * width, _parts(slot.values, top)
        above_y = min((part.y for part in parts), default=TOP + AREA) - 5
        x, slot_x = f"{middle - bar_width / 2:.2f}%", f"{place * width:.2f}%"
        bars.append(Bar(slot, slot_x, x, f"{middle:.2f}%", parts, round(above_y, 1), ticks % 2 == 0))
    return BarChart(
        bars,
        [Line(_height(at, top), scale.text(at)) for at in range(step, top + 1, step)] if step else [],
        list(legend),
        f"{width:.2f}%",
        f"{bar_width:.2f}%",
        top,
        _curve(bars, rates),
        is_stacked,
    )


def _height(value: float, top: float) -> float:
    return round(TOP + AREA * (1 - value / top), 1)


def _parts(values: Mapping[str, int], top: int) -> list[Part]:
    parts, ground = [], float(TOP + AREA)
    for kind, value in values.items():
        height = round(max(LEAST, AREA * value / top), 1) if top else LEAST
        ground = round(ground - height, 1)
        parts.append(Part(kind, value, ground, height))
    return parts


def _curve(bars: Sequence[Bar], rates: Sequence[float | None]) -> Curve | None:
    """Return the line through the rates; None if all are zero or missing."""
    highest = max((rate for rate in rates if rate), default=0)
    if not highest:
        return None
    step = round_step(ceil(highest), lines=2)
    top = min(100, 2 * step)
    points = [
        (bar.middle, _height(rate, top)) for bar, rate in zip(bars, rates, strict=True) if rate is not None
    ]
    segments = [(*first, *second) for first, second in zip(points, points[1:], strict=False)]
    return Curve(segments, points, [Line(_height(at, top), f"{at:g}%") for at in (top / 2, top)])


def round_step(highest: int, lines: int = LINES) -> int:
    """Return the round distance of at most ``lines`` lines: 1, 2, 5, 10, 20 …"""
    size = 1
    while True:
        for step in STEPS:
            if highest <= lines * step * size:
                return step * size
        size *= 10


def duration_step(longest_ms: Millis) -> Millis:
    """Return the round duration between at most LINES lines: 5 ms, 30 s, 1 min …"""
    short = (step for step in DURATION_STEPS if longest_ms <= LINES * step)
    return next(short, 0) or DAY_MS * round_step(-(-longest_ms // DAY_MS))


def round_duration(ms: Millis) -> str:
    """Return a duration in its largest whole unit: ``250 ms``, ``30 s``, ``90 min``, ``2 h``."""
    if ms % HOUR_MS == 0:
        return _("%(n)s h", n=ms // HOUR_MS)
    if ms % MINUTE_MS == 0:
        return _("%(n)s min", n=ms // MINUTE_MS)
    return duration(ms)


def short_number(value: int) -> str:
    """Return a count in at most four characters: ``850``, ``1.2k``, ``36k``, ``1.2M``."""
    for unit, letter in ((MILLION, "M"), (THOUSAND, "k")):
        if value >= unit:
            count = value / unit
            return f"{count:.1f}{letter}" if count < SHORT else f"{count:.0f}{letter}"
    return str(value)


COUNTS = Scale(round_step, number)
DURATIONS = Scale(duration_step, round_duration)
