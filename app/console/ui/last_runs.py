"""Last runs of a job as a bar chart: height is duration, colour and sign the result.

The strips of the job list are in app.console.jobs.lists.recent_run_bars.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from flask import url_for

from app.console.ui.bar_chart import DURATIONS, BarChart, Meaning, Slot, bar_chart
from app.console.ui.filters import absolute_in, duration, number, outcome, reader_zone, run_duration
from app.console.web.current import translate_reason
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.runs.outcome import OPEN
from app.domain.runs.statistics import EndedRun, Statistics, statistics_of
from app.models.log import JobLog
from app.store.runs.recent import Run

#: places of bars, however few runs there are; labels below them
PLACES, TICKS = 30, 5
#: most characters of a reason in the card of a bar
REASON_MAX = 160
#: characters of ``2024-``, ``2024-05-01`` and ``2024-05-01 10:00``
YEAR_LENGTH, DATE_LENGTH, MINUTE_LENGTH = 5, 10, 16
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


def run_kind(result: str) -> str:
    """Return the kind of a part: the colour of a result, and its name if others have that colour too."""
    tone = SIGNS[result][0]
    return f"danger {result}" if tone == "danger" else tone


def last_runs_chart(newest_first: Sequence[JobLog], reasons: Mapping[int, str]) -> BarChart:
    """Return the bars of these runs, oldest first; ``reasons`` by id: why runs failed, in English."""
    runs, label_of = list(reversed(newest_first)), labeller()
    results = [outcome(run) for run in runs]
    base, slots = url_for("logs.show", log_id=0)[:-1], []
    for run, result, tick in zip(runs, results, _ticks(runs), strict=True):
        label = _("Run %(id)s", id=run.id) + " · " + label_of(run)
        reason = translate_reason(reasons.get(run.id, ""))[:REASON_MAX]
        slots.append(
            Slot(
                {run_kind(result): run_duration(run) or 0},
                f"{label} · {reason}" if reason else label,
                f"{base}{run.id}",
                above="" if result == "success" else SIGNS[result][1],
                tick=tick,
            )
        )
    counts = Counter(results)
    legend = [
        Meaning(run_kind(result), str(label), number(counts[result]), "" if result == "success" else sign)
        for result, (_tone, sign, label) in SIGNS.items()
        if counts[result]
    ]
    return bar_chart(slots, legend, DURATIONS, places=PLACES, is_stacked=False)


def _ticks(runs: Sequence[JobLog]) -> list[str]:
    """Return the times below some of the runs, without the day if all ran on one."""
    zone, places = reader_zone(), max(len(runs), PLACES)
    times = [absolute_in(run.trigger_time or 0, zone) for run in runs]
    begin = DATE_LENGTH if len({time[:DATE_LENGTH] for time in times}) == 1 else YEAR_LENGTH
    every = places // TICKS
    return [
        time[begin:MINUTE_LENGTH].strip() if place % every == every // 2 else ""
        for place, time in enumerate(times)
    ]


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
    return statistics_of(ended_runs(logs))


def ended_runs(logs: Sequence[JobLog]) -> list[EndedRun]:
    """Return the finished ones of these runs, in their order."""
    outcomes = [(log, outcome(log)) for log in logs]
    return [
        EndedRun(result == "success", run_duration(log)) for log, result in outcomes if result not in OPEN
    ]
