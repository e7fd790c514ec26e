"""Planned starts of schedules with a calendar or blackouts: the hours in which they run, also moved ones."""

from functools import lru_cache

from app.clock import HOUR_MS, Millis
from app.domain.calendars.blackouts import Blackout
from app.domain.calendars.day_rule import DayRule
from app.domain.calendars.effective import JobRules
from app.domain.enums import ScheduleType
from app.domain.schedules.planned_starts import SCHEDULES_KEPT, HourlyStarts, Window, estimate_starts
from app.domain.schedules.schedule import Schedule


def estimate_ruled(schedule: Schedule, next_ms: Millis, window: Window) -> HourlyStarts:
    """Estimate the starts of a schedule within a window as ``estimate_starts``, by its rules.

    An hour of which a blackout covers a part counts whole.
    """
    starts, rules = estimate_starts(schedule, next_ms, window), schedule.rules
    if not isinstance(rules, JobRules):
        return starts
    if schedule.type is ScheduleType.FIX_DELAY:
        return starts._replace(hours=starts.hours & ~_closed_hours(rules, window))
    anchor_ms = next_ms if schedule.type is ScheduleType.FIX_RATE else 0
    return starts._replace(hours=_hours(schedule, rules.day_rule, rules.blackouts, anchor_ms, window))


@lru_cache(maxsize=SCHEDULES_KEPT)
def _hours(
    schedule: Schedule,
    day_rule: DayRule | None,
    blackouts: tuple[Blackout, ...],
    anchor_ms: Millis,
    window: Window,
) -> int:
    """Return a mask of the hours of a window in which a schedule runs."""
    rules = JobRules(day_rule, blackouts, anchor_ms)
    hours, at_ms = 0, window.from_ms - 1
    while (next_ms := rules.next_after_ms(schedule, at_ms)) is not None and next_ms < window.until_ms:
        hour = (next_ms - window.from_ms) // HOUR_MS
        hours |= 1 << hour
        at_ms = window.from_ms + (hour + 1) * HOUR_MS - 1
    return hours


def _closed_hours(rules: JobRules, window: Window) -> int:
    """Return a mask of the hours of a window that blackouts cover."""
    hours = 0
    for hour in range(window.hours):
        begin_ms = window.from_ms + hour * HOUR_MS
        closure = rules.closure_at(begin_ms)
        if closure is not None and closure.covers(begin_ms + HOUR_MS - 1):
            hours |= 1 << hour
    return hours
