"""Sparkline: the last runs of a job as SVG bars; height is duration, colour and sign the result.

The strips of the job list are in app.console.jobs.lists.recent_run_bars.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from app.console.ui.filters import absolute_in, duration, outcome, reader_zone, run_duration
from app.console.web.language import lazy_gettext as _l
from app.domain.runs.outcome import OPEN
from app.domain.runs.statistics import EndedRun, Statistics, statistics_of
from app.models.log import JobLog
from app.store.runs.recent import Run

#: measures in pixels
STEP, BAR_WIDTH, AREA_HEIGHT, LEAST_HEIGHT = 18, 14, 72, 4
#: outcome -> (kind of colour, sign, label)
SIGNS = {
    "success": ("success", "✓", _l("Succeeded")),
    "failed": ("danger", "✗", _l("Failed")),
    "timeout": ("danger", "!", _l("Timed out")),
    "killed": ("danger", "■", _l("Killed")),
    "refused": ("danger", "–", _l("Not started")),
    "unresolved": ("warning", "?", _l("Unresolved")),
    "running": ("info", "▸", _l("Running")),
    "sending": ("wait", "…", _l("Waiting")),
}


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
    """Bars, oldest first, and the duration of the highest; empty if none is known."""

    bars: list[Bar]
    longest: str
    width: int
    height: int = AREA_HEIGHT
    bar_width: int = BAR_WIDTH


def timeline_of(newest_first: Sequence[JobLog]) -> Timeline:
    """Return the bars of these runs."""
    runs, label_of = list(reversed(newest_first)), labeller()
    durations_ms = [run_duration(run) for run in runs]
    durations = [took_ms or 0 for took_ms in durations_ms]
    longest_ms = max(durations, default=0)
    longest = duration(longest_ms) if any(took_ms is not None for took_ms in durations_ms) else ""
    bars = []
    for number, (run, took_ms) in enumerate(zip(runs, durations, strict=True)):
        height = max(LEAST_HEIGHT, round(AREA_HEIGHT * took_ms / longest_ms)) if longest_ms else LEAST_HEIGHT
        kind, sign, _label = SIGNS[outcome(run)]
        bars.append(Bar(run.id, number * STEP, AREA_HEIGHT - height, height, kind, sign, label_of(run)))
    return Timeline(bars, longest, len(bars) * STEP)


def labeller() -> Callable[[JobLog | Run], str]:
    """Return a function that labels runs: ``Failed · 12 s · 2024-05-01 10:00:00``.

    Runs in progress are without their duration: it would change a live page every second.
    """
    labels = {name: str(label) for name, (_kind, _sign, label) in SIGNS.items()}
    duration_text, zone = cache(duration), reader_zone()

    def label(run: JobLog | Run) -> str:
        word = outcome(run)
        parts = (
            labels[word],
            "" if word in OPEN else duration_text(run_duration(run)),
            absolute_in(run.trigger_time or 0, zone),
        )
        return " · ".join(text for text in parts if text)

    return label


def statistics(logs: Sequence[JobLog]) -> Statistics:
    """Return statistics of the finished runs."""
    outcomes = [(log, outcome(log)) for log in logs]
    return statistics_of(
        [EndedRun(result == "success", run_duration(log)) for log, result in outcomes if result not in OPEN]
    )
