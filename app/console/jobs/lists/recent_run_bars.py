"""Strips: the recent runs of a job in the job list, as bars that link to the runs.

A page has up to a thousand bars of few different shapes, so they are made here and cached instead of in a
macro.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from flask import url_for
from markupsafe import Markup, escape

from app.clock import Millis
from app.console.ui.filters import absolute_in, duration, outcome, reader_zone, run_duration
from app.console.ui.last_runs import SIGNS
from app.console.web.language import ngettext
from app.domain.runs.outcome import OPEN
from app.store.runs.recent import Run

#: pixels, widths are in css/forms.css; a run that did not succeed has a mark below its bar
STEP, AREA_HEIGHT, HEIGHT, LEAST_HEIGHT, MARK_GAP, MARK_HEIGHT = 5, 12, 16, 2, 1, 3
#: cached bars, without their links
SHAPES_KEPT = 4_096


def strip_drawer() -> Callable[[Sequence[Run]], Markup]:
    """Return a function that draws the strip of one job from its runs, newest first.

    The longest run has the highest bar; one in progress, whose duration grows, has a full one.
    """
    base, zone = escape(url_for("logs.show", log_id=0)[:-1]), reader_zone()
    words = {word: str(escape(label)) for word, (_kind, _sign, label) in SIGNS.items()}

    @cache
    def took(took_ms: Millis) -> str:
        return f" · {escape(duration(took_ms))}"

    def bar(run: Run, word: str, took_ms: Millis | None, shape: str) -> str:
        label = words[word] if took_ms is None else words[word] + took(took_ms)
        time_text = absolute_in(run.trigger_time or 0, zone)
        return f'<a href="{base}{run.id}"><title>{label} · {time_text}</title>{shape}</a>'

    def draw(newest_first: Sequence[Run]) -> Markup:
        runs = [(run, outcome(run)) for run in reversed(newest_first)]
        spans_ms = [None if word in OPEN else run_duration(run) for run, word in runs]
        longest_ms = max((span_ms or 0 for span_ms in spans_ms), default=0) or 1
        bars = [
            bar(run, word, span_ms, _shape(word, number * STEP, _height(word, span_ms or 0, longest_ms)))
            for number, ((run, word), span_ms) in enumerate(zip(runs, spans_ms, strict=True))
        ]
        good = sum(word == "success" for _run, word in runs)
        label = ngettext(
            "%(num)d run; %(good)s succeeded",
            "The last %(num)d runs, oldest first; %(good)s succeeded",
            len(runs),
            good=good,
        )
        opening = f'<svg class="chart strip" data-bars role="group" aria-label="{escape(label)}"'
        opening += f' width="{len(runs) * STEP}" height="{HEIGHT}"'
        return Markup(f"{opening}>{''.join(bars)}</svg>")  # nosec B704  # escaped above

    return draw


def _height(word: str, took_ms: Millis, longest_ms: Millis) -> int:
    if word in OPEN:
        return AREA_HEIGHT
    return max(LEAST_HEIGHT, round(AREA_HEIGHT * took_ms / longest_ms))


@lru_cache(SHAPES_KEPT)
def _shape(word: str, x: int, height: int) -> str:
    """Return a bar without its link: clickable area, bar, and mark."""
    kind = SIGNS[word][0]
    bar = f'<rect class="hit" x="{x}"/>' + _rect(kind, x, AREA_HEIGHT - height, height)
    return bar if kind == "success" else bar + _rect(kind, x, AREA_HEIGHT + MARK_GAP, MARK_HEIGHT)


def _rect(kind: str, x: int, y: int, height: int) -> str:
    return f'<rect class="bar {kind}" x="{x}" y="{y}" height="{height}"/>'
