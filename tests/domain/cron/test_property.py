"""Random expressions: the real evaluators against the brute-force ones, mostly around clock changes."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.enums import ScheduleType
from app.domain.schedules.cron.expression import CronExpression
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.schedule import Schedule, next_after_ms, next_times, zone
from tests.domain.cron.brute import quartz_days, quartz_fires, unix_fires
from tests.support.domain_cron import (
    day_fields,
    quartz,
    unix,
)
from tests.support.truth_table import truth_table

HOUR_MS = 3_600_000
#: local noon of days of clock changes, and two ordinary days
DAYS = [
    ("America/New_York", "2025-03-08T12:00"),
    ("America/New_York", "2025-11-01T12:00"),
    ("Europe/Berlin", "2026-03-28T12:00"),
    ("Europe/Berlin", "2026-10-24T12:00"),
    ("Australia/Lord_Howe", "2025-10-04T12:00"),
    ("Australia/Lord_Howe", "2026-04-04T12:00"),
    ("America/Sao_Paulo", "2018-11-03T12:00"),
    ("America/Sao_Paulo", "2018-02-17T12:00"),
    ("Asia/Shanghai", "2024-02-28T12:00"),
    ("UTC", "2027-12-31T12:00"),
]


starts = st.builds(
    lambda day, shift_s: (day[0], noon_ms(*day) + shift_s * 1000),
    st.sampled_from(DAYS),
    st.integers(0, 24 * 3600),
)


def noon_ms(time_zone: str, local: str) -> int:
    return int(datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(time_zone)).timestamp() * 1000)


@settings(max_examples=200, deadline=None)
@given(quartz, starts, st.integers(0, 999))
def test_quartz_fires_match_the_brute_force(expression: str, start: tuple[str, int], millis: int) -> None:
    tz, after_ms = zone(start[0]), start[1] + millis
    until_ms = after_ms + 6 * HOUR_MS
    cron, at, found = CronExpression.parse(expression), after_ms, []
    while (fire := cron.next_after_ms(at, tz)) is not None and fire <= until_ms and len(found) < 500:
        assert fire > at
        found.append(fire)
        at = fire
    assert found == quartz_fires(expression, tz, after_ms, until_ms)[:500]


@settings(max_examples=200, deadline=None)
@given(
    day_fields,
    st.sampled_from(["", " *", " 2024-2026", " 2025/3,2024"]),
    st.datetimes(datetime(2023, 1, 1), datetime(2101, 1, 1)),
)
def test_the_days_of_two_years_match_the_brute_force(
    fields: tuple[str, str, str], years: str, start: datetime
) -> None:
    noon = start.replace(hour=12, minute=0, second=0, microsecond=0)
    expression = f"0 0 12 {' '.join(fields)}{years}"
    cron, at, found = CronExpression.parse(expression), noon - timedelta(seconds=1), []
    while (fire := cron.next_after(at)) is not None and fire < noon + timedelta(days=800):
        assert (fire.hour, fire.minute, fire.second) == (12, 0, 0)
        found.append(fire.date())
        at = fire
    assert found == quartz_days(expression, noon, 800)


@settings(max_examples=100, deadline=None)
@given(unix, starts)
def test_unix_fires_match_the_brute_force(expression: str, start: tuple[str, int]) -> None:
    time_zone, after_ms = start
    until_ms = after_ms + 30 * HOUR_MS
    schedule = Schedule(ScheduleType.CRON, expression, time_zone)
    found = [fire for fire in next_times(schedule, after_ms, 130) if fire <= until_ms]
    assert found == unix_fires(expression, zone(time_zone), after_ms, until_ms)[:130]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/-,?LW#JANSUNMO \t\n日x", max_size=40), st.integers(0, 4_000_000_000_000))
def test_any_text_is_refused_or_fires_later(text: str, after_ms: int) -> None:
    schedule = Schedule(ScheduleType.CRON, text, "Australia/Lord_Howe")
    try:
        fire = next_after_ms(schedule, after_ms)
    except InvalidCronExpression:
        fire = None
    assert fire is None or fire > after_ms


@truth_table("expression", ["0/20 * 1,2 ? * *", "0 15,40 * * * ?"])
@truth_table("time_zone, noon", DAYS)
def test_a_whole_day_of_a_clock_change_matches_the_brute_force(
    expression: str, time_zone: str, noon: str
) -> None:
    after_ms = noon_ms(time_zone, noon)
    until_ms = after_ms + 24 * HOUR_MS
    found = [
        fire
        for fire in next_times(Schedule(ScheduleType.CRON, expression, time_zone), after_ms, 2000)
        if fire <= until_ms
    ]
    assert found == quartz_fires(expression, zone(time_zone), after_ms, until_ms)
