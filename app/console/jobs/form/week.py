"""Week of a job: its starts in the next seven days, beside those of the other jobs of its executor."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from flask import url_for
from flask_babel import format_date
from sqlalchemy.orm import Session

from app.clock import HOUR_MS, Millis
from app.console.jobs.form.schedule_preview import Preview
from app.console.ui.filters import number
from app.console.web.language import ngettext
from app.domain.calendars.ruled_starts import estimate_ruled
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.lists.heat_levels import FLAT_LEVEL, is_flat, level_of, level_tops
from app.domain.schedules.planned_starts import (
    QUARTER_MS,
    Window,
    hours_of,
    next_days,
)
from app.domain.schedules.schedule import RESTING, Schedule
from app.models.base import zone_name
from app.models.job import Job
from app.services.jobs.rules import schedule_of
from app.services.report.group_week import GroupWeek, group_week, own_hours

DAYS = 7
#: of the drawing: width of the names of the days, and of an hour; height of a day
NAMES, HOUR, DAY = 52, 12, 14
HOURS_A_DAY, TICK_HOURS = 24, 6
#: dots that count as few, and the radius of few and of many
FEW_DOTS, FEW_RADIUS, MANY_RADIUS = 56, 3.5, 2.0
#: schedules whose instants are known before they are saved
PREVIEW_TYPES = frozenset({ScheduleType.CRON, ScheduleType.AT})


@dataclass(slots=True)
class Row:
    """Day of the week: places of its hours with other jobs, and of those in which the job starts."""

    name: str
    y: int
    #: x, level of the heat
    hours: list[tuple[int, int]] = field(default_factory=list)
    dots: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Week:
    """Drawing of a week, and the other jobs that start with the next run."""

    rows: list[Row]
    #: x, label
    ticks: list[tuple[int, str]]
    width: int
    height: int
    is_on: bool
    #: radius of the dots: small if there are many, so that the hours are seen behind them
    radius: float
    #: "3 other jobs of this executor start in the same minute", or empty; the page that lists them
    clash: str
    clash_href: str


def week_of(session: Session, job: Job, preview: Preview, *, now_ms: Millis) -> Week | None:
    """Return the week of a job whose schedule is valid; None without one. ``preview`` is its own."""
    if job.schedule_type == ScheduleType.NONE:
        return None
    schedule = schedule_of(job, zone_name())
    window = _window(schedule, now_ms)
    is_on = job.trigger_status == TriggerStatus.RUNNING
    has_next = is_on and 0 < job.trigger_next_time < RESTING
    instants = [job.trigger_next_time] if has_next else [time.ms for time in preview.runs[:1]]
    others = group_week(session, job.job_group, job, instants, window, now_ms=now_ms)
    own = estimate_ruled(schedule, instants[0] if instants else now_ms, window)
    at_ms, count = next(iter(others.clashes.items()), (0, 0))
    rows = week_rows(others, own_hours(own, window), schedule.time_zone)
    return Week(
        rows,
        [(NAMES + HOUR * hour, f"{hour:02d}") for hour in range(0, HOURS_A_DAY + 1, TICK_HOURS)],
        NAMES + HOUR * HOURS_A_DAY,
        DAY * (len(rows) + 1),
        is_on,
        FEW_RADIUS if sum(len(row.dots) for row in rows) <= FEW_DOTS else MANY_RADIUS,
        clash_text(count) if count else "",
        load_address(at_ms) if count else "",
    )


def week_rows(others: GroupWeek, own: Sequence[int], zone_name: str) -> list[Row]:
    """Return the days of a week by the clock of a zone; ``own`` are the hours in which the job starts."""
    hours, rows = hours_of(others.window, zone_name), list[Row]()
    counts = [sum(others.starts[number] for number in at.hours) for at in hours]
    tops, own_set = level_tops(counts), frozenset(own)
    # The window begins and ends within an hour.
    is_even = is_flat(counts[1:-1])
    first = hours[0].day
    for at, count in zip(hours, counts, strict=True):
        place = (at.day - first).days
        while len(rows) <= place:
            rows.append(Row(format_date(at.day, "EEE d"), DAY * len(rows)))
        x = NAMES + HOUR * at.hour
        rows[place].hours.append((x, FLAT_LEVEL if is_even and count else level_of(count, tops)))
        if not own_set.isdisjoint(at.hours):
            rows[place].dots.append(x)
    return rows


def with_neighbours(
    session: Session, preview: Preview, schedule: Schedule, group_id: int, job: Job | None, *, now_ms: Millis
) -> Preview:
    """Return a preview whose instants say how many other jobs of the group start with them.

    ``job`` is the stored one that is edited; the instants of periods depend on when they are saved.
    """
    instants = [time.ms for time in preview.runs]
    if schedule.type not in PREVIEW_TYPES or not instants:
        return preview
    week = group_week(session, group_id, job, instants, _window(schedule, now_ms), now_ms=now_ms)
    times = [
        replace(time, others=_others_text(week.clashes[time.ms]), others_href=load_address(time.ms))
        if time.runs and time.ms in week.clashes
        else time
        for time in preview.times
    ]
    return replace(preview, times=tuple(times))


def clash_text(count: int) -> str:
    """Return that other jobs start together with this one."""
    return ngettext(
        "%(n)s other job of this executor starts in the same minute",
        "%(n)s other jobs of this executor start in the same minute",
        count,
        n=number(count),
    )


def _others_text(count: int) -> str:
    return ngettext("%(n)s other job", "%(n)s other jobs", count, n=number(count))


def load_address(at_ms: Millis) -> str:
    """Return the address of the jobs that start in the hour of an instant."""
    return url_for("load.index", hour=at_ms // HOUR_MS * (HOUR_MS // QUARTER_MS)) + "#starters"


def _window(schedule: Schedule, now_ms: Millis) -> Window:
    """Return the window from the hour that it is to the end of the seventh day."""
    return next_days(now_ms - HOUR_MS, schedule.time_zone, days=DAYS)
