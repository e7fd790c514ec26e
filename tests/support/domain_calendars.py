"""Helpers of the tests of calendars and blackouts, for all that need them."""

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from app.clock import Millis
from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.day_rule import DayRule, day_rule, parse_rule
from app.domain.calendars.effective import JobRules, StartKind
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import RESTING, Schedule, next_after_ms

WORKDAY, HOLIDAY = DayKind.WORKDAY, DayKind.HOLIDAY


def days(kind: DayKind, *spans: str) -> dict[date, DayKind]:
    """Return days of a kind, given as "2026-10-01" or "2026-10-01..2026-10-07"."""
    found = dict[date, DayKind]()
    for span in spans:
        first, _, last = span.partition("..")
        day = date.fromisoformat(first)
        while day <= date.fromisoformat(last or first):
            found[day] = kind
            day += timedelta(1)
    return found


#: Saturdays and Sundays, and the National Day of 2026: a week off, with two days to make up for it
CHINA = Calendar(
    "cn",
    days=days(HOLIDAY, "2026-10-01..2026-10-07") | days(WORKDAY, "2026-09-20", "2026-10-10"),
    valid_until=date(2026, 12, 31),
)


def rule(calendar: Calendar, text: str) -> DayRule:
    """Return a day rule, given as "workdays", "holidays next" or "workdays 3"."""
    on, *more = text.split()
    value: dict[str, object] = {"name": calendar.name, "on": on}
    for word in more:
        value |= {"otherwise": word} if word.isalpha() else {"nth": int(word)}
    entered = parse_rule(json.dumps(value))
    assert entered is not None
    return day_rule(calendar, entered)


def text_of(at_ms: Millis, zone: str = "UTC") -> str:
    """Write an instant as "10-01 09:00", with seconds and milliseconds unless they are 0."""
    local = datetime.fromtimestamp(at_ms // 1000, ZoneInfo(zone))
    seconds = f":{local:%S}" if local.second or at_ms % 1000 else ""
    thousandths = f".{at_ms % 1000:03}" if at_ms % 1000 else ""
    return f"{local:%m-%d %H:%M}{seconds}{thousandths}"


def ruled(
    conf: str,
    rules: JobRules,
    zone: str,
    *,
    kind: ScheduleType = ScheduleType.CRON,
    window: Sequence[Millis] = (0, 0),
) -> Schedule:
    """Return a schedule with rules."""
    return Schedule(kind, conf, zone, not_before_ms=window[0], not_after_ms=window[1], rules=rules)


def starts(schedule: Schedule, after_ms: Millis, until_ms: Millis) -> str:
    """List the effective instants later than one and up to another, found one after the other.

    One that stands for another: "10-08 09:00 (10-01 09:00)", with "once" at the end of a blackout.
    """
    rules, found, at_ms = schedule.rules, list[str](), after_ms
    assert isinstance(rules, JobRules)
    while (next_ms := next_after_ms(schedule, at_ms)) is not None and next_ms <= until_ms:
        assert next_ms > at_ms
        start, text = rules.start_at(schedule, next_ms), text_of(next_ms, schedule.time_zone)
        assert start.due_ms == next_ms
        if start.kind is not StartKind.REGULAR:
            once = " once" if start.kind is StartKind.RUN_ONCE else ""
            text += f"{once} ({text_of(start.logical_ms, schedule.time_zone)})"
        found.append(text)
        at_ms = next_ms
    if next_ms is None or next_ms == RESTING:
        found.append("end" if next_ms is None else "rests")
    return ", ".join(found)
