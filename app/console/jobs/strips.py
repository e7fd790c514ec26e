"""Strips: the recent runs of a job in the job list, as bars that link to the runs.

A page has up to a thousand bars of few different shapes, so they are made here and cached instead of in a
macro.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from flask import url_for
from markupsafe import Markup, escape

from app.console.ui.filters import outcome, run_duration
from app.console.ui.sparkline import SIGNS, labeller
from app.console.web.language import _
from app.domain.run_outcome import OPEN
from app.store.recent_runs import Run

#: pixels; a run that did not succeed has a mark below its bar
STEP, BAR_WIDTH, AREA_HEIGHT, HEIGHT, LEAST_HEIGHT, MARK_GAP, MARK_HEIGHT = 5, 4, 12, 16, 2, 1, 3
#: cached bars, without their links
SHAPES_KEPT = 4_096


def strip_drawer() -> Callable[[Sequence[Run]], Markup]:
    """Return a function that draws the strip of one job from its runs, newest first.

    The longest run has the highest bar; one in progress, whose duration grows, has a full one.
    """
    label_of, base = labeller(), escape(url_for("logs.show", log_id=0)[:-1])

    def draw(newest_first: Sequence[Run]) -> Markup:
        runs = newest_first[::-1]
        outcomes = [outcome(run) for run in runs]
        ended_ms = [
            0 if word in OPEN else run_duration(run) or 0 for run, word in zip(runs, outcomes, strict=True)
        ]
        longest_ms, succeeded, bars = max(ended_ms, default=0), 0, []
        for number, (run, word) in enumerate(zip(runs, outcomes, strict=True)):
            height = max(LEAST_HEIGHT, round(AREA_HEIGHT * ended_ms[number] / (longest_ms or 1)))
            height = AREA_HEIGHT if word in OPEN else height
            kind = SIGNS[word][0]
            succeeded += kind == "success"
            bar = f"<title>{escape(label_of(run))}</title>{_bar(kind, number * STEP, height)}"
            bars.append(f'<a href="{base}{run.id}">{bar}</a>')
        label = _("The last %(n)s runs, oldest first; %(good)s succeeded", n=len(runs), good=succeeded)
        opening = f'<svg class="timeline strip" data-bars role="group" aria-label="{escape(label)}"'
        opening += f' width="{len(runs) * STEP}" height="{HEIGHT}"'
        return Markup(f"{opening}>{''.join(bars)}</svg>")  # nosec B704  # escaped above

    return draw


@lru_cache(SHAPES_KEPT)
def _bar(kind: str, x: int, height: int) -> str:
    """Return a bar without its link: clickable area, bar, and mark."""
    area = f'<rect class="hit" x="{x}" width="{STEP}" height="{HEIGHT}"/>'
    bar = area + _rect(kind, x, AREA_HEIGHT - height, height)
    return bar if kind == "success" else bar + _rect(kind, x, AREA_HEIGHT + MARK_GAP, MARK_HEIGHT)


def _rect(kind: str, x: int, y: int, height: int) -> str:
    return f'<rect class="bar {kind}" x="{x}" y="{y}" width="{BAR_WIDTH}" height="{height}"/>'
