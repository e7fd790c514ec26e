"""Excuses: whether a calendar or blackouts have excluded all instants of a schedule in a time."""

from datetime import datetime, timedelta

from app.clock import SECOND_MS, Millis
from app.domain.calendars.blackouts import closures
from app.domain.calendars.day_rule import DayRule
from app.domain.calendars.effective import JobRules, Start, raw_of_day, starts_on
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, zone

#: schedules of which all instants are known before they run
_KNOWN = (ScheduleType.CRON, ScheduleType.FIX_RATE, ScheduleType.AT)


def is_excused(schedule: Schedule, from_ms: Millis, until_ms: Millis) -> bool:
    """Whether a schedule has instants from ``from_ms`` to before ``until_ms``, and none of them ever runs.

    Raises InvalidCronExpression for an invalid schedule.
    """
    rules = schedule.rules
    if not isinstance(rules, JobRules) or schedule.type not in _KNOWN:
        return False
    rule = rules.day_rule
    if rule is not None and rule.moves and schedule.type is ScheduleType.CRON:
        return _none_is_moved(schedule, rules, rule, from_ms, until_ms)
    raw_ms = rules.raw_after(schedule, from_ms - 1)(from_ms - 1)
    if raw_ms is None or raw_ms >= until_ms:
        return False
    next_ms = rules.next_after_ms(schedule, from_ms - 1)
    if next_ms is not None and next_ms < until_ms and rules.start_at(schedule, next_ms).logical_ms >= from_ms:
        return False
    # One of them may run at the end of a blackout.
    once = [rules.run_once(schedule, closure) for closure in closures(rules.blackouts, from_ms, until_ms)]
    return not any(start is not None and from_ms <= start.logical_ms < until_ms for start in once)


def _none_is_moved(
    schedule: Schedule, rules: JobRules, rule: DayRule, from_ms: Millis, until_ms: Millis
) -> bool:
    tz = zone(schedule.time_zone)
    day = datetime.fromtimestamp(from_ms // SECOND_MS, tz).date()
    last = datetime.fromtimestamp((until_ms - 1) // SECOND_MS, tz).date()
    has_any = False
    while day <= last:
        raw = [at_ms for at_ms in raw_of_day(schedule, day) if from_ms <= at_ms < until_ms]
        has_any = has_any or bool(raw)
        target = rule.target(day)
        if raw and target is not None:
            starts = starts_on(schedule.conf, schedule.time_zone, rule, target).starts
            if any(start.logical_ms in raw and _runs(schedule, rules, start) for start in starts):
                return False
        day += timedelta(1)
    return has_any


def _runs(schedule: Schedule, rules: JobRules, start: Start) -> bool:
    """Whether an instant that the calendar leaves runs in the end."""
    if schedule.not_after_ms and start.due_ms > schedule.not_after_ms:
        return False
    closure = rules.closure_at(start.due_ms)
    if closure is None:
        return True
    once = rules.run_once(schedule, closure)
    return once is not None and once.logical_ms == start.logical_ms
