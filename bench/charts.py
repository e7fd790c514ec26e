"""Charts as SVG text: lines and stacked bars, with one type size, for light and dark pages."""

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

WIDTH, HEIGHT = 720, 376
#: the area of the plot
LEFT, RIGHT, TOP, BOTTOM = 84, 690, 64, 300
#: places on an axis that are named themselves, and the widest bar
FEW, BAR = 4, 80
#: text per character and per line, in pixels
CHARACTER, LINE = 7, 16
COLOURS = ("#3987c8", "#d9822b", "#3f9c5a", "#9a6fc9", "#858d97", "#c9504a")
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 } .bold { font-weight: 600 }
.page { fill: #ffffff } .grid { stroke: #d0d7de } .dim { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #30363d } .dim { fill: #9198a1 } }
"""
Point = tuple[float, float]


class Labels(NamedTuple):
    """Title, and what the axes count."""

    title: str
    across: str
    up: str


def ticks(highest: float) -> list[float]:
    """Return round values from 0 to at least ``highest``, in steps of 1, 2 or 5 times a power of 10."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / 5
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * 1.0001 >= rough)
    count = next(number for number in range(1, 12) if number * step * 1.0001 >= highest)
    return [round(number * step, 10) for number in range(count + 1)]


def scaled(value: float, highest: float, low: float, high: float) -> float:
    """Return the pixel of a value on an axis from 0 at ``low`` to ``highest`` at ``high``."""
    return round(low + (high - low) * value / highest, 1)


def number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def lines(labels: Labels, series: Mapping[str, Sequence[Point]]) -> str:
    """Return a chart with a line through the points of each series, in order of x.

    A few places on the axis are named themselves instead of round values.
    """
    points = [point for each in series.values() for point in each]
    places = sorted({x for x, _ in points})
    across = places if 0 < len(places) <= FEW else ticks(max(places, default=0))
    up = ticks(max((y for _, y in points), default=0))
    drawn = [_frame(labels, up), _legend(list(series))]
    for tick in across:
        drawn.append(text(scaled(tick, across[-1], LEFT, RIGHT), BOTTOM + 18, number(tick), "middle"))
    for colour, each in zip(COLOURS, series.values(), strict=False):
        dots = [(scaled(x, across[-1], LEFT, RIGHT), scaled(y, up[-1], BOTTOM, TOP)) for x, y in sorted(each)]
        path = " ".join(f"{x},{y}" for x, y in dots)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in dots]
    return _document(labels, drawn)


def bars(labels: Labels, stacks: Mapping[str, Mapping[str, float]]) -> str:
    """Return a chart with a stacked bar for each name; its height is written above it."""
    parts = list(dict.fromkeys(part for stack in stacks.values() for part in stack))
    up = ticks(max((sum(stack.values()) for stack in stacks.values()), default=0))
    drawn = [_frame(labels, up), _legend(parts)]
    room = (RIGHT - LEFT) / max(len(stacks), 1)
    for place, (name, stack) in enumerate(stacks.items()):
        middle, below, width = LEFT + room * (place + 0.5), 0.0, min(room * 0.6, BAR)
        for colour, part in zip(COLOURS, parts, strict=False):
            above = below + stack.get(part, 0)
            top, bottom = scaled(above, up[-1], BOTTOM, TOP), scaled(below, up[-1], BOTTOM, TOP)
            shown = f"{part}: {number(stack.get(part, 0))}"
            drawn.append(
                f'<rect x="{middle - width / 2:.1f}" y="{top}" width="{width:.1f}"'
                f' height="{bottom - top:.1f}" fill="{colour}"><title>{escape(shown)}</title></rect>'
            )
            below = above
        height = scaled(below, up[-1], BOTTOM, TOP)
        drawn.append(text(round(middle, 1), height - 5, number(round(below, 2)), "middle"))
        for row, line in enumerate(name.split("\n")):
            drawn.append(text(round(middle, 1), BOTTOM + 18 + row * LINE, line, "middle"))
    return _document(labels, drawn)


def _frame(labels: Labels, up: Sequence[float]) -> str:
    drawn = [text(LEFT, 20, labels.title, kind="bold"), text(LEFT - 8, TOP - 14, labels.up, "end", "dim")]
    for tick in up:
        y = scaled(tick, up[-1], BOTTOM, TOP)
        drawn.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}" class="grid"/>')
        drawn.append(text(LEFT - 8, y + 4, number(tick), "end"))
    drawn.append(text(RIGHT, HEIGHT - 12, labels.across, "end", "dim"))
    return "\n".join(drawn)


def _legend(names: Sequence[str]) -> str:
    drawn, x = [], LEFT
    for colour, name in zip(COLOURS, names, strict=False):
        drawn.append(f'<rect x="{x}" y="{TOP - 23}" width="10" height="10" rx="2" fill="{colour}"/>')
        drawn.append(text(x + 15, TOP - 14, name))
        x += 35 + CHARACTER * len(name)
    return "\n".join(drawn)


def _document(labels: Labels, drawn: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
    page = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" class="page"/>'
    title = f"<title>{escape(labels.title)}</title><style>{STYLE}</style>"
    return "\n".join([f'{head} width="{WIDTH}" height="{HEIGHT}">', title, page, *drawn, "</svg>", ""])
