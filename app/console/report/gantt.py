"""Run timeline: a lane per job, a bar per run from start to end, missed runs between. Rendered as SVG.

Positions are percentages of the period, so that it fits any width. Colour, height, outline and sign show the
result.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from flask import url_for

from app.clock import MINUTE_MS, Millis
from app.console.ui.filters import HOUR_MS, absolute, outcome, reader_zone, run_duration
from app.console.ui.labels import SKIP_REASONS
from app.console.ui.listing import address_with, whole_number
from app.console.ui.sparkline import SIGNS, labeller
from app.console.web.language import _, ngettext
from app.console.web.language import lazy_gettext as _l
from app.domain.run_timeline import stacked
from app.models.skip import SKIPPED_MAX, Skip
from app.services.report.run_timeline import LOOKED_AT, JobRuns, RunTimeline, Waiting
from app.store.jobs import JobName
from app.store.recent_runs import Run

#: selectable hours -> minutes between ticks
HOURS = {1: 10, 6: 60, 24: 240}
DEFAULT_HOURS = 1
#: pixels of one line of a lane; maximum lines for overlapping runs
LINE, LINES_MAX = 24, 3
#: kind of mark -> top within the line and height, in pixels
SHAPES = {
    "success": (13, 9),
    "danger": (10, 12),
    "warning": (10, 12),
    "info": (12, 10),
    "wait": (12, 10),
    "skip": (20, 2),
}
#: sign per kind; success has none
MARK_SIGNS = {"success": "", "danger": "✗", "warning": "?", "info": "▸", "wait": "…", "skip": "◇"}
MARK_LABELS = {
    "success": _l("Succeeded"),
    "danger": _l("Failed"),
    "warning": _l("Unresolved"),
    "info": _l("Running"),
    "wait": _l("Waiting"),
    "skip": _l("Missed"),
}
#: percent of the width: minimum distance of signs on a line, and minimum width of a mark
SIGN_ROOM, LEAST_WIDTH = 1.3, 0.25


@dataclass(frozen=True, slots=True)
class Mark:
    """Mark: one run, one record of missed runs, or waiting fires."""

    kind: str
    x: str
    width: str
    y: int
    height: int
    sign: str
    sign_y: int
    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Lane:
    """Lane: one job; ``counts`` by kind of mark (skips in instants, waiting in fires)."""

    job: JobName
    marks: list[Mark]
    counts: Counter[str]
    #: ``12 runs · 1 failed · 3 missed``
    summary: str
    height: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Tick of the time axis."""

    x: str
    label: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """Legend entry: meaning and look of a kind of mark; also a column of the table."""

    kind: str
    y: int
    height: int
    sign: str
    label: str


@dataclass(frozen=True, slots=True)
class Gantt:
    """The timeline, and sentences about what it omits."""

    hours: int
    lanes: list[Lane]
    ticks: list[Tick]
    notes: list[str]

    @property
    def choices(self) -> list[tuple[int, str]]:
        """Selectable period: hours and the URL of the page."""
        return [(hours, address_with(hours=hours) + "#run-timeline") for hours in HOURS]

    @property
    def legend(self) -> list[Meaning]:
        """Kinds of marks."""
        return [
            Meaning(kind, *SHAPES[kind], MARK_SIGNS[kind], str(label)) for kind, label in MARK_LABELS.items()
        ]


def requested_hours() -> int:
    """Return the requested hours."""
    hours = whole_number("hours", DEFAULT_HOURS)
    return hours if hours in HOURS else DEFAULT_HOURS


def gantt_of(found: RunTimeline, hours: int) -> Gantt:
    """Return the rendered timeline."""
    scale = _Scale(found.from_ms, found.to_ms, labeller(), _("Run %(id)s", id="{id}"))
    return Gantt(
        hours,
        [_lane(row, scale) for row in found.rows],
        _ticks(scale, HOURS[hours], reader_zone()),
        _notes(found),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Renderer: instants to percentages, runs to labels."""

    from_ms: Millis
    to_ms: Millis
    label_of: Callable[[Run], str]
    #: ``Run {id}`` in the reader's language
    named: str

    def percent(self, at_ms: Millis) -> float:
        inside = min(self.to_ms, max(self.from_ms, at_ms)) - self.from_ms
        return 100 * inside / max(1, self.to_ms - self.from_ms)

    def place(self, start_ms: Millis, end_ms: Millis) -> tuple[str, str]:
        """Return the left edge and the width of a mark."""
        left = min(100 - LEAST_WIDTH, self.percent(start_ms))
        return f"{left:.2f}%", f"{max(LEAST_WIDTH, self.percent(end_ms) - left):.2f}%"


def _lane(row: JobRuns, scale: _Scale) -> Lane:
    """Return one lane; its marks are ordered by time for the Tab and arrow keys."""
    spans = [(run.trigger_time, run.trigger_time + (run_duration(run) or 0)) for run in row.runs]
    spans += [(row.waiting.oldest_ms, scale.to_ms)] if row.waiting else []
    lines = stacked(spans, lines=LINES_MAX)
    base = url_for("logs.show", log_id=0)[:-1]
    timed = [
        (run.trigger_time, _run_mark(run, span, line, scale, base))
        for run, span, line in zip(row.runs, spans, lines, strict=False)
    ]
    skipped_at = url_for("jobs.show", job_id=row.job.id, tab="runs") + "#skips"
    timed += [(skip.from_ms, _skip_mark(skip, scale, skipped_at)) for skip in row.skips]
    if row.waiting:
        timed.append((row.waiting.oldest_ms, _wait_mark(row, row.waiting, lines[-1], scale)))
    marks = [mark for _at, mark in sorted(timed, key=lambda each: each[0])]
    counts = Counter(mark.kind for mark in marks)
    counts["wait"] = row.waiting.count if row.waiting else 0
    counts["skip"] = min(SKIPPED_MAX, sum(skip.skipped for skip in row.skips))
    return Lane(
        row.job,
        _with_room(marks),
        counts,
        _summary(len(row.runs), row.total, counts),
        LINE * (max(lines, default=0) + 1),
    )


def _run_mark(run: Run, span: tuple[Millis, Millis], line: int, scale: _Scale, base: str) -> Mark:
    kind, _sign, _label = SIGNS[outcome(run)]
    x, width = scale.place(*span)
    top, height = SHAPES[kind]
    label = scale.named.replace("{id}", str(run.id)) + " · " + scale.label_of(run)
    return Mark(
        kind, x, width, LINE * line + top, height, MARK_SIGNS[kind], LINE * line + 9, label, f"{base}{run.id}"
    )


def _skip_mark(skip: Skip, scale: _Scale, href: str) -> Mark:
    x, width = scale.place(skip.from_ms, skip.to_ms)
    top, height = SHAPES["skip"]
    when = (
        absolute(skip.from_ms)
        if skip.from_ms == skip.to_ms
        else f"{absolute(skip.from_ms)} – {absolute(skip.to_ms)}"
    )
    missed = ngettext("%(num)d missed run", "%(num)d missed runs", skip.skipped)
    label = f"{missed} · {SKIP_REASONS.get(skip.reason, skip.reason)} · {when}"
    return Mark("skip", x, width, top, height, MARK_SIGNS["skip"], 9, label, href)


def _wait_mark(row: JobRuns, waiting: Waiting, line: int, scale: _Scale) -> Mark:
    x, width = scale.place(waiting.oldest_ms, scale.to_ms)
    top, height = SHAPES["wait"]
    fires = ngettext("%(num)d run waiting to be sent", "%(num)d runs waiting to be sent", waiting.count)
    label = fires + " · " + _("due %(at)s", at=absolute(waiting.oldest_ms))
    href = url_for("jobs.show", job_id=row.job.id)
    return Mark("wait", x, width, LINE * line + top, height, MARK_SIGNS["wait"], LINE * line + 9, label, href)


def _with_room(marks: list[Mark]) -> list[Mark]:
    """Remove signs that would overlap; heights and outlines still distinguish the marks."""
    last: dict[tuple[int, str], float] = {}
    kept = []
    for mark in marks:
        at, line = float(mark.x[:-1]), (mark.sign_y, mark.sign)
        overlaps = mark.sign and at - last.get(line, -SIGN_ROOM) < SIGN_ROOM
        if mark.sign and not overlaps:
            last[line] = at
        kept.append(replace(mark, sign="") if overlaps else mark)
    return kept


def _summary(drawn: int, total: int, counts: Counter[str]) -> str:
    """Summarize the marks of a lane; the figures cover the marks shown."""
    cut = _("%(n)s of %(all)s runs", n=drawn, all=total)
    parts = [cut if total > drawn else ngettext("%(num)d run", "%(num)d runs", drawn)]
    parts += [_("%(n)s failed", n=counts["danger"])] if counts["danger"] else []
    parts += [_("%(n)s unresolved", n=counts["warning"])] if counts["warning"] else []
    parts += [_("%(n)s running", n=counts["info"])] if counts["info"] else []
    parts += [_("%(n)s waiting", n=counts["wait"])] if counts["wait"] else []
    parts += [_("%(n)s missed", n=counts["skip"])] if counts["skip"] else []
    return " · ".join(parts)


def _ticks(scale: _Scale, minutes: int, zone: ZoneInfo) -> list[Tick]:
    """Return the ticks at round times of the reader's zone, except at the edges."""
    local = datetime.fromtimestamp(scale.from_ms / 1000, zone)
    past = (local.hour * 60 + local.minute) % minutes
    first_ms = int((local - timedelta(minutes=past, seconds=local.second)).timestamp()) * 1000
    ticks = []
    for at_ms in range(first_ms, scale.to_ms, minutes * MINUTE_MS):
        if 1 < scale.percent(at_ms) < 99 and at_ms > scale.from_ms:
            ticks.append(
                Tick(
                    f"{scale.percent(at_ms):.2f}%",
                    datetime.fromtimestamp(at_ms / 1000, zone).strftime("%H:%M"),
                )
            )
    return ticks


def _notes(found: RunTimeline) -> list[str]:
    notes = []
    if found.jobs_cut:
        notes.append(
            _(
                "Showing %(n)s jobs, those with the most problems first, then those with the most runs.",
                n=len(found.rows),
            )
        )
    if found.looked_cut:
        notes.append(
            _(
                "Based on the newest %(n)s runs; jobs that ran earlier without problems may be missing.",
                n=LOOKED_AT,
            )
        )
    if found.runs_cut is not None:
        notes.append(_("Showing the newest %(n)s runs of each job.", n=found.runs_cut))
    return notes


def within_ms(hours: int) -> Millis:
    """Return hours in milliseconds."""
    return hours * HOUR_MS
