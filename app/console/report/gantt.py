"""Run timeline: a lane per job, a mark per run from start to end, skipped instants between.

js/timeline.js draws it. The page has the runs as short texts, a segment for each 24th of the period: where
a mark is drawn depends on the time of looking, its text does not, so that a refresh sends only segments with
new runs.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from flask import url_for

from app.clock import HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.console.ui.bar_chart import Meaning
from app.console.ui.filters import absolute, outcome, reader_zone, run_duration
from app.console.ui.labels import SKIP_REASONS
from app.console.ui.last_runs import SIGNS, run_kind
from app.console.ui.lists.listing import address_with, whole_number
from app.console.web.language import _, ngettext
from app.console.web.language import lazy_gettext as _l
from app.domain.runs.outcome import OPEN
from app.models.skip import SKIPPED_MAX
from app.services.report.run_timeline import LOOKED_AT, JobRuns, RunTimeline
from app.store.jobs.scheduling import JobName
from app.store.runs.recent import Run

#: selectable hours -> minutes between ticks
HOURS = {1: 10, 6: 60, 24: 240}
DEFAULT_HOURS = 1
#: segments of the period
SEGMENTS = 24
#: colour of a mark -> top within the line and height, in pixels
SHAPES = {
    "success": (13, 9),
    "danger": (10, 12),
    "warning": (10, 12),
    "info": (12, 10),
    "wait": (12, 10),
    "skip": (20, 2),
}
#: kind of part -> label and sign: outcomes of runs, and skipped instants
MEANINGS = {
    **{run_kind(name): (label, sign) for name, (_tone, sign, label) in SIGNS.items()},
    "skip": (_l("Skipped"), "◇"),
}
#: kinds that the legend has even if no mark is of them
ALWAYS = frozenset({"success", "danger failed", "info"})
#: outcome -> its number in a segment
_NUMBERS = {name: number for number, name in enumerate(SIGNS)}


@dataclass(frozen=True, slots=True)
class Segment:
    """Runs of a job that started within one segment; ``number`` counts segments since 1970."""

    number: int
    #: for each run: outcome, seconds into the segment, milliseconds it took (empty: it runs, or never ran),
    #: and id less that of the run before; hexadecimal, ``0.5c.1f40.1 1.7a.3e8.2``
    marks: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Skipped runs or waiting fires; ends in seconds since 1970, ``end`` None: now."""

    kind: str
    start: int
    end: int | None
    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Lane:
    """Lane: one job; ``counts`` by kind of mark (skips in instants, waiting in runs and fires)."""

    job: JobName
    segments: list[Segment]
    marks: list[Mark]
    counts: Counter[str]
    #: ``12 runs · 1 failed · 3 skipped``
    summary: str

    @property
    def others(self) -> str:
        """The marks as JSON: kind, start, end, label, address."""
        return json.dumps(
            [[mark.kind, mark.start, mark.end, mark.label, mark.href] for mark in self.marks],
            ensure_ascii=False,
        )


@dataclass(frozen=True, slots=True)
class Gantt:
    """The timeline, and sentences about what it omits."""

    hours: int
    lanes: list[Lane]
    #: ticks of the time axis: seconds since 1970, label
    ticks: list[tuple[int, str]]
    notes: list[str]

    @property
    def seconds(self) -> int:
        """Length of a segment."""
        return segment_ms(self.hours) // SECOND_MS

    @property
    def choices(self) -> list[tuple[int, str]]:
        """Selectable period: hours and the URL of the page."""
        return [(hours, address_with(hours=hours) + "#run-timeline") for hours in HOURS]

    @property
    def legend(self) -> list[Meaning]:
        """Kinds of marks that there are; also the columns of the table."""
        return [
            Meaning(kind, str(label), sign="" if kind == "success" else sign)
            for kind, (label, sign) in MEANINGS.items()
            if kind in ALWAYS or any(lane.counts[kind] for lane in self.lanes)
        ]

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Colour of a mark -> top and height."""
        return SHAPES

    @property
    def looks(self) -> list[tuple[str, str, str]]:
        """Kind, label and sign of each outcome, by the numbers in the segments, and of skipped instants."""
        return [
            (kind, str(label), "" if kind == "success" else sign) for kind, (label, sign) in MEANINGS.items()
        ]


def requested_hours() -> int:
    """Return the requested hours."""
    hours = whole_number("hours", DEFAULT_HOURS)
    return hours if hours in HOURS else DEFAULT_HOURS


def gantt_of(run_timeline: RunTimeline, hours: int) -> Gantt:
    """Return the timeline as the page ships it."""
    return Gantt(
        hours,
        [_lane(row, segment_ms(hours)) for row in run_timeline.rows],
        _ticks(run_timeline, HOURS[hours], reader_zone()),
        _notes(run_timeline),
    )


def segment_ms(hours: int) -> Millis:
    """Return the length of a segment."""
    return within_ms(hours) // SEGMENTS


def _lane(row: JobRuns, length_ms: Millis) -> Lane:
    segments = defaultdict(list)
    for run in row.runs:
        segments[run.trigger_time // length_ms].append(run)
    counts = Counter(run_kind(outcome(run)) for run in row.runs)
    counts["wait"] += row.waiting.count if row.waiting else 0
    counts["skip"] = min(SKIPPED_MAX, sum(skip.skipped for skip in row.skips))
    return Lane(
        row.job,
        [Segment(number, _segment_text(runs, number * length_ms)) for number, runs in segments.items()],
        _marks(row),
        counts,
        _summary(len(row.runs), row.total, counts),
    )


def _segment_text(runs: list[Run], from_ms: Millis) -> str:
    """Return the runs of a segment as text."""
    last, texts = 0, []
    for run in runs:
        name = outcome(run)
        took_ms = None if name in OPEN else run_duration(run)
        took = "" if took_ms is None else f"{max(0, took_ms):x}"
        texts.append(
            f"{_NUMBERS[name]}.{(run.trigger_time - from_ms) // SECOND_MS:x}.{took}.{run.id - last:x}"
        )
        last = run.id
    return " ".join(texts)


def _marks(row: JobRuns) -> list[Mark]:
    href = url_for("jobs.show", job_id=row.job.id, tab="runs")
    marks = []
    for skip in row.skips:
        start, end = absolute(skip.from_ms), absolute(skip.to_ms)
        count_text = ngettext("%(num)d skipped run", "%(num)d skipped runs", skip.skipped)
        time_text = start if skip.from_ms == skip.to_ms else f"{start} – {end}"
        label = f"{count_text} · {SKIP_REASONS.get(skip.reason, skip.reason)} · {time_text}"
        marks.append(Mark("skip", skip.from_ms // SECOND_MS, skip.to_ms // SECOND_MS, label, href + "#skips"))
    if row.waiting:
        count, oldest_ms = row.waiting.count, row.waiting.oldest_ms
        fires = ngettext("%(num)d run waiting to be sent", "%(num)d runs waiting to be sent", count)
        label = fires + " · " + _("due %(at)s", at=absolute(oldest_ms))
        marks.append(Mark("wait", oldest_ms // SECOND_MS, None, label, href))
    return marks


def _summary(count: int, total: int, counts: Counter[str]) -> str:
    """Summarize the marks of a lane; the figures cover the marks shown."""
    cut = _("%(n)s of %(all)s runs", n=count, all=total)
    parts = [cut if total > count else ngettext("%(num)d run", "%(num)d runs", count)]
    failed = sum(count for kind, count in counts.items() if kind.startswith("danger"))
    parts += [_("%(n)s failed", n=failed)] if failed else []
    parts += [_("%(n)s unresolved", n=counts["warning"])] if counts["warning"] else []
    parts += [_("%(n)s running", n=counts["info"])] if counts["info"] else []
    parts += [_("%(n)s waiting", n=counts["wait"])] if counts["wait"] else []
    parts += [_("%(n)s skipped", n=counts["skip"])] if counts["skip"] else []
    return " · ".join(parts)


def _ticks(run_timeline: RunTimeline, minutes: int, zone: ZoneInfo) -> list[tuple[int, str]]:
    """Return the ticks at round times of the reader's zone."""
    local = datetime.fromtimestamp(run_timeline.from_ms / 1000, zone)
    past = (local.hour * 60 + local.minute) % minutes
    first_ms = int((local - timedelta(minutes=past, seconds=local.second)).timestamp()) * 1000
    return [
        (at_ms // SECOND_MS, datetime.fromtimestamp(at_ms / 1000, zone).strftime("%H:%M"))
        for at_ms in range(first_ms, run_timeline.to_ms, minutes * MINUTE_MS)
        if at_ms > run_timeline.from_ms
    ]


def _notes(run_timeline: RunTimeline) -> list[str]:
    notes = []
    if run_timeline.jobs_cut:
        notes.append(
            _(
                "Showing %(n)s jobs, those with the most problems first, then those with the most runs.",
                n=len(run_timeline.rows),
            )
        )
    if run_timeline.looked_cut:
        notes.append(
            _(
                "Based on the newest %(n)s runs; jobs that ran earlier without problems may be missing.",
                n=LOOKED_AT,
            )
        )
    if run_timeline.runs_cut is not None:
        notes.append(_("Showing the newest %(n)s runs of each job.", n=run_timeline.runs_cut))
    return notes


def within_ms(hours: int) -> Millis:
    """Return hours in milliseconds."""
    return hours * HOUR_MS
