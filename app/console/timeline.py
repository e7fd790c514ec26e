"""The last runs of a job as bars: height is duration, colour and sign the result, a click leads to the log. Drawn on the server.

On the page of a job they are large, with a sign below each; in the list of jobs they are a strip as high as a line of text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from app.clock import Millis
from app.console.filters import absolute_in, duration, outcome, reader_zone, run_duration
from app.console.language import _
from app.console.language import lazy_gettext as _l
from app.domain.run_outcome import OPEN
from app.domain.run_statistics import Ended, Statistics, statistics_of
from app.models.log import JobLog
from app.store.recent_runs import Run

#: pixels
STEP, BAR_WIDTH, AREA_HEIGHT, LEAST_HEIGHT = 18, 14, 72, 4
#: outcome -> (kind of colour, sign, word)
SIGNS = {
    "success": ("success", "✓", _l("Success")),
    "failed": ("danger", "✗", _l("Failed")),
    "timeout": ("danger", "!", _l("Failed (time-out)")),
    "refused": ("danger", "–", _l("Not started")),
    "unresolved": ("warning", "?", _l("Unresolved")),
    "running": ("info", "▸", _l("Running")),
    "sending": ("info", "▸", _l("Being sent")),
}
#: the same of a strip; what did not succeed has a mark below its bar
STRIP_STEP, STRIP_BAR, STRIP_AREA, STRIP_HEIGHT, STRIP_LEAST = 5, 4, 18, 24, 3

R = TypeVar("R", JobLog, Run)


@dataclass(frozen=True, slots=True)
class Bar:
    """One run."""

    log_id: int
    x: int
    y: int
    height: int
    kind: str
    sign: str
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The bars, oldest first, and the duration the highest stands for."""

    bars: list[Bar]
    longest: str
    width: int
    height: int = AREA_HEIGHT
    bar_width: int = BAR_WIDTH


def timeline_of(newest_first: Sequence[JobLog]) -> Timeline:
    """Return the bars of these runs."""
    bars, longest_ms = _bars(newest_first, labeller(), step=STEP, area=AREA_HEIGHT, least=LEAST_HEIGHT)
    return Timeline(bars, duration(longest_ms), len(bars) * STEP)


@dataclass(frozen=True, slots=True)
class Strip:
    """The bars of a strip, oldest first, and all of them in one sentence."""

    bars: list[Bar]
    label: str
    width: int
    height: int = STRIP_HEIGHT
    area: int = STRIP_AREA
    bar_width: int = STRIP_BAR


def labeller() -> Callable[[JobLog | Run], str]:
    """Return what labels the runs of one page, ``Failed · 12 s · 2024-05-01 10:00:00``: each word is looked up once."""
    words = {name: str(word) for name, (_kind, _sign, word) in SIGNS.items()}
    spoken, zone = cache(duration), reader_zone()

    def label(run: JobLog | Run) -> str:
        took = spoken(run_duration(run))
        return " · ".join(text for text in (words[outcome(run)], took, absolute_in(run.trigger_time or 0, zone)) if text)

    return label


def strip_of(newest_first: Sequence[Run], label_of: Callable[[Run], str]) -> Strip:
    """Return the strip of these runs; a bar has the full height at the longest of them."""
    bars, _longest_ms = _bars(newest_first, label_of, step=STRIP_STEP, area=STRIP_AREA, least=STRIP_LEAST)
    good = sum(bar.kind == "success" for bar in bars)
    label = _("The last runs, oldest first: %(n)s, of which %(good)s succeeded", n=len(bars), good=good)
    return Strip(bars, label, len(bars) * STRIP_STEP)


def statistics(logs: Sequence[JobLog]) -> Statistics:
    """Return the figures of the runs that have ended."""
    outcomes = [(log, outcome(log)) for log in logs]
    return statistics_of([Ended(word == "success", run_duration(log)) for log, word in outcomes if word not in OPEN])


def _bars(newest_first: Sequence[R], label_of: Callable[[R], str], *, step: int, area: int, least: int) -> tuple[list[Bar], Millis]:
    """Return the bars, oldest first, and the longest duration, at which a bar has the full height."""
    runs = list(reversed(newest_first))
    durations = [run_duration(run) or 0 for run in runs]
    longest_ms = max(durations, default=0)
    bars = []
    for number, (run, took_ms) in enumerate(zip(runs, durations, strict=True)):
        height = max(least, round(area * took_ms / longest_ms)) if longest_ms else least
        kind, sign, _word = SIGNS[outcome(run)]
        bars.append(Bar(run.id, number * step, area - height, height, kind, sign, label_of(run)))
    return bars, longest_ms
