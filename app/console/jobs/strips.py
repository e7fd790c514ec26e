"""The last runs of a job in the list of jobs: a strip of bars as high as a line of text, each the link to its run.

A list has a thousand of them, of few shapes: they are written here and not in a macro.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from flask import url_for
from markupsafe import Markup, escape

from app.console.ui.filters import outcome, run_duration
from app.console.ui.sparkline import SIGNS, labeller
from app.console.web.language import _
from app.store.recent_runs import Run

#: pixels; what did not succeed has a mark below its bar
STEP, BAR_WIDTH, AREA_HEIGHT, HEIGHT, LEAST_HEIGHT, MARK_GAP, MARK_HEIGHT = 5, 4, 18, 24, 3, 2, 4
#: bars without their links; there are not many more
SHAPES_KEPT = 4_096


def strip_drawer() -> Callable[[Sequence[Run]], Markup]:
    """Return what draws the strips of one page, from the newest runs of a job, newest first; the highest bar is the longest run."""
    label_of, base = labeller(), escape(url_for("logs.show", log_id=0)[:-1])

    def draw(newest_first: Sequence[Run]) -> Markup:
        runs = newest_first[::-1]
        durations = [run_duration(run) or 0 for run in runs]
        longest_ms, good, bars = max(durations, default=0), 0, []
        for number, (run, took_ms) in enumerate(zip(runs, durations, strict=True)):
            height = (
                max(LEAST_HEIGHT, round(AREA_HEIGHT * took_ms / longest_ms)) if longest_ms else LEAST_HEIGHT
            )
            kind = SIGNS[outcome(run)][0]
            good += kind == "success"
            bars.append(
                f'<a href="{base}{run.id}"><title>{escape(label_of(run))}</title>{_bar(kind, number * STEP, height)}</a>'
            )
        label = _("The last runs, oldest first: %(n)s, of which %(good)s succeeded", n=len(runs), good=good)
        opening = f'<svg class="timeline strip" data-bars role="group" aria-label="{escape(label)}"'
        return Markup(f'{opening} width="{len(runs) * STEP}" height="{HEIGHT}">{"".join(bars)}</svg>')

    return draw


@lru_cache(SHAPES_KEPT)
def _bar(kind: str, x: int, height: int) -> str:
    """Return a bar without its link: what is clicked, what is seen, and the mark."""
    bar = f'<rect class="hit" x="{x}" width="{STEP}" height="{HEIGHT}"/>' + _rect(
        kind, x, AREA_HEIGHT - height, height
    )
    return bar if kind == "success" else bar + _rect(kind, x, AREA_HEIGHT + MARK_GAP, MARK_HEIGHT)


def _rect(kind: str, x: int, y: int, height: int) -> str:
    return f'<rect class="bar {kind}" x="{x}" y="{y}" width="{BAR_WIDTH}" height="{height}"/>'
