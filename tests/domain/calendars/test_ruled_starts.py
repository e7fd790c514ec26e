"""Planned starts with rules: hours that a calendar or a blackout excludes, and those of moved instants."""

from datetime import date

from app.clock import DAY_MS, HOUR_MS, Millis
from app.domain.calendars.blackouts import Blackout
from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.day_rule import EnteredRule, Otherwise, day_rule
from app.domain.calendars.effective import JobRules
from app.domain.calendars.ruled_starts import estimate_ruled
from app.domain.enums import ScheduleType
from app.domain.schedules.planned_starts import Window
from app.domain.schedules.schedule import Schedule
from tests.support.truth_table import truth_table

#: Thursday, 2026-10-01 00:00 UTC, the first of two holidays before a weekend
BEGIN: Millis = 1_790_812_800_000
WEEK = Window(BEGIN, 7 * 24)
CN = Calendar("cn", days=dict.fromkeys((date(2026, 10, 1), date(2026, 10, 2)), DayKind.HOLIDAY))
SKIP, NEXT = (
    day_rule(CN, EnteredRule("cn", otherwise=otherwise)) for otherwise in (Otherwise.SKIP, Otherwise.NEXT)
)
NIGHT = Blackout(1, BEGIN + 4 * DAY_MS, BEGIN + 4 * DAY_MS + 10 * HOUR_MS)


@truth_table(
    "kind, conf, rules, hours",
    [
        (ScheduleType.CRON, "0 30 9 * * ?", JobRules(SKIP), [105, 129, 153]),
        (ScheduleType.CRON, "0 30 9 * * ?", JobRules(SKIP, (NIGHT,)), [129, 153]),
        (ScheduleType.CRON, "0 30 9 1 * ?", JobRules(NEXT), [105]),
        (ScheduleType.CRON, "0 30 9 ? * SUN", JobRules(SKIP), []),
        (ScheduleType.FIX_RATE, "43200", JobRules(SKIP), [99, 111, 123, 135, 147, 159]),
        (ScheduleType.FIX_DELAY, "86400", JobRules(None, (NIGHT,)), [3, 27, 51, 75, 123, 147]),
    ],
)
def test_the_hours_in_which_a_schedule_runs(
    kind: ScheduleType, conf: str, rules: JobRules, hours: list[int]
) -> None:
    starts = estimate_ruled(Schedule(kind, conf, "UTC", rules=rules), BEGIN + 3 * HOUR_MS, WEEK)
    assert [hour for hour in range(WEEK.hours) if starts.hours >> hour & 1] == hours
    assert starts.per_hour == 1
