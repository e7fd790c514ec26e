"""Estimated starts per hour: exact without clock changes and with bounds on full hours, close otherwise."""

from collections import Counter
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import HOUR_MS
from app.domain.enums import ScheduleType
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.planned_starts import (
    HourlyStarts,
    Window,
    estimate_starts,
    hours_of,
    next_days,
    start_minutes,
    total_starts,
)
from app.domain.schedules.schedule import Schedule, next_after_ms
from tests.support.domain_cron import quartz, unix
from tests.support.truth_table import truth_table


def instant(zone: str, local: str) -> int:
    return int(datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


def cron(expression: str, zone: str = "UTC", **bounds: int) -> Schedule:
    return Schedule(ScheduleType.CRON, expression, zone, **bounds)


def estimated(schedule: Schedule, window: Window, next_ms: int = 0) -> list[int]:
    return total_starts([(estimate_starts(schedule, next_ms, window), 1)], window)


def stepped(schedule: Schedule, window: Window) -> list[int]:
    """Count by stepping from start to start."""
    counts, at = Counter[int](), next_after_ms(schedule, window.from_ms - 1)
    while at is not None and at < window.until_ms:
        counts[(at - window.from_ms) // HOUR_MS] += 1
        at = next_after_ms(schedule, at)
    return [counts[hour] for hour in range(window.hours)]


@settings(max_examples=60, deadline=None)
@given(st.one_of(quartz, unix), st.sampled_from(["UTC", "Asia/Kolkata"]), st.integers(0, 400))
def test_a_cron_count_equals_stepping_without_clock_changes(expression: str, zone: str, days_on: int) -> None:
    window = next_days(instant(zone, "2026-05-04T22:10:00") + days_on * 86_400_000, zone, days=1)
    schedule = cron(expression, zone)
    assert estimated(schedule, window) == stepped(schedule, window)


@truth_table(
    "expression, zone, day, sums",
    [
        ("* * * * * ?", "UTC", "2026-05-04", dict.fromkeys(range(24), 3600)),
        ("0/30 * * * * ?", "Asia/Shanghai", "2026-05-04", dict.fromkeys(range(24), 120)),
        ("*/30 * * * *", "Asia/Shanghai", "2026-05-04", dict.fromkeys(range(24), 2)),
        ("0 0 3 * * ?", "Europe/Berlin", "2026-05-04", {3: 1}),
        # a Saturday, and the first of a month
        ("0 0 9-17 ? * MON-FRI", "UTC", "2026-05-02", {}),
        ("0 0 0 1 * ?", "UTC", "2026-05-01", {0: 1}),
        ("30 2 * * 1-5", "UTC", "2026-05-04", {2: 1}),
        # clocks go from 2 to 3: the skipped hour has no starts
        ("0 0/15 1-3 * * ?", "Europe/Berlin", "2026-03-29", {1: 4, 3: 4}),
        # clocks go from 3 to 2: the repeated hour counts twice
        ("0 0/15 2 * * ?", "Europe/Berlin", "2026-10-25", {2: 8}),
    ],
)
def test_starts_per_hour_of_a_day(expression: str, zone: str, day: str, sums: dict[int, int]) -> None:
    window = next_days(instant(zone, f"{day}T00:00:00") - 1, zone, days=1)
    found = estimated(cron(expression, zone), window)
    hours = {at.hour: sum(found[hour] for hour in at.hours) for at in hours_of(window, zone)}
    assert {hour: count for hour, count in hours.items() if count} == sums


def test_hours_are_in_the_readers_zone() -> None:
    window = next_days(instant("Asia/Kolkata", "2026-05-04T22:10:00"), "Asia/Kolkata", days=2)
    assert window.from_ms == instant("Asia/Kolkata", "2026-05-04T23:00:00")
    hours = hours_of(window, "Asia/Kolkata")
    assert len(hours) == 25
    first, last = hours[0], hours[-1]
    assert (first.day, first.hour, last.day, last.hour) == (date(2026, 5, 4), 23, date(2026, 5, 5), 23)
    # 3:45 in UTC is 9:15 there
    found = estimated(cron("0 45 3 * * ?"), window)
    assert [at.hour for at in hours if any(found[hour] for hour in at.hours)] == [9]


def test_the_last_hour_of_an_evening_links_to_the_next_day() -> None:
    window = next_days(instant("UTC", "2026-05-04T23:10:00"), "UTC", days=7)
    assert (window.from_ms, window.hours) == (instant("UTC", "2026-05-05T00:00:00"), 7 * 24)


def test_a_repeated_hour_is_one_entry() -> None:
    window = next_days(instant("Europe/Berlin", "2026-10-24T23:30:00"), "Europe/Berlin", days=1)
    assert {at.hour: len(at.hours) for at in hours_of(window, "Europe/Berlin")} == {
        hour: 2 if hour == 2 else 1 for hour in range(24)
    }


@truth_table(
    "conf, next_hour, expected",
    [
        ("60", 0, [60, 60, 60, 60]),
        ("60", 2.5, [0, 0, 60, 60]),  # the hour of the first start counts in full
        ("2700", 0, [1, 1, 1, 1]),  # 1.33 on average
        ("3600", -5.5, [1, 1, 1, 1]),
        ("7200", 1, [0, 1, 0, 1]),
        ("9999999999", 3, [0, 0, 0, 1]),
        ("60", 4, [0, 0, 0, 0]),
    ],
)
@truth_table("kind", [ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY])
def test_fixed_periods_count_from_their_next_start(
    kind: ScheduleType, conf: str, next_hour: float, expected: list[int]
) -> None:
    window = Window(1_000_000 * HOUR_MS, 4)
    next_ms = window.from_ms + int(next_hour * HOUR_MS)
    assert estimated(Schedule(kind, conf, "UTC"), window, next_ms) == expected


@truth_table(
    "schedule",
    [
        Schedule(ScheduleType.FIX_RATE, "900", "UTC"),
        cron("0 0/15 * * * ?"),
        cron("*/15 * * * *"),
    ],
)
@truth_table(
    "not_before, not_after, expected",
    [
        (2, 0, [0, 0, 4, 4]),
        (0, 2, [4, 4, 4, 0]),  # its last instant is in the third hour
        (1, 3, [0, 4, 4, 4]),
        (9, 0, [0, 0, 0, 0]),
        (0, -1, [0, 0, 0, 0]),
    ],
)
def test_only_hours_within_the_bounds_count(
    schedule: Schedule, not_before: int, not_after: int, expected: list[int]
) -> None:
    window = Window(100 * HOUR_MS, 4)
    bounded = Schedule(
        schedule.type,
        schedule.conf,
        schedule.time_zone,
        not_before_ms=window.from_ms + not_before * HOUR_MS if not_before else 0,
        not_after_ms=window.from_ms + not_after * HOUR_MS if not_after else 0,
    )
    assert estimated(bounded, window, window.from_ms) == expected


@truth_table(
    "time, bounds, expected",
    [
        ("00:59:59", (0, 0), [0, 0]),
        ("01:00:00", (0, 0), [1, 0]),
        ("02:59:59", (0, 0), [0, 1]),
        ("03:00:00", (0, 0), [0, 0]),
        ("01:15:00", (HOUR_MS + 900_000, HOUR_MS + 900_000), [1, 0]),
        ("01:15:00", (HOUR_MS + 900_001, 0), [0, 0]),
        ("01:15:00", (0, HOUR_MS + 899_999), [0, 0]),
    ],
)
def test_a_single_instant_counts_once_and_only_inside(
    time: str, bounds: tuple[int, int], expected: list[int]
) -> None:
    schedule = Schedule(ScheduleType.AT, f"1970-01-01 {time}", "UTC", *bounds)
    assert estimated(schedule, Window(HOUR_MS, 2)) == expected


def test_jobs_without_a_schedule_start_nothing() -> None:
    assert estimate_starts(Schedule(ScheduleType.NONE, "", "UTC"), 0, Window(0, 4)) == HourlyStarts()


def test_every_job_of_a_schedule_counts() -> None:
    window = Window(0, 2)
    early, hourly = (estimate_starts(cron(text), 0, window) for text in ("0 5 0 * * ?", "0 20 * * * ?"))
    assert total_starts([(early, 10_000), (hourly, 3)], window) == [10_003, 3]
    assert (early.count_in([0]), early.count_in([1]), hourly.count_in([0, 1])) == (1, 0, 2)


@truth_table("expression", ["", "* *", "0 0 25 * * ?", "0 0 0 * * *", "H * * * *", "a b c d e"])
def test_an_invalid_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidCronExpression):
        estimate_starts(cron(expression), 0, Window(0, 24))


@pytest.mark.parametrize(
    ("schedule", "minutes"),
    [
        (cron("0 5,50 1 * * ?"), [(65, 1), (110, 1)]),
        (cron("0/20 5 1 * * ?"), [(65, 3)]),
        (cron("0 0 7 * * ?", "Asia/Kathmandu"), [(75, 1)]),
        (Schedule(ScheduleType.FIX_RATE, "1800", "UTC"), [(10, 1), (40, 1), (70, 1), (100, 1)]),
        (Schedule(ScheduleType.FIX_RATE, "5400", "UTC"), [(10, 1), (100, 1)]),
        (Schedule(ScheduleType.AT, "2026-03-02 01:07:30", "UTC"), [(67, 1)]),
        (Schedule(ScheduleType.NONE, "", "UTC"), []),
    ],
    ids=str,
)
def test_the_minutes_of_the_starts(schedule: Schedule, minutes: list[tuple[int, float]]) -> None:
    window = Window(instant("UTC", "2026-03-02 00:00"), 2)
    next_ms = window.from_ms + 10 * 60_000
    starts = estimate_starts(schedule, next_ms, window)
    assert list(start_minutes(schedule, next_ms, starts, window, range(2))) == minutes


@pytest.mark.parametrize(
    ("expression", "frequent"),
    [("0 0 * * * ?", False), ("0 0/30 * * * ?", True), ("0 0/20 9 * * ?", False), ("* 0 9 * * ?", True)],
)
def test_more_starts_than_hours_are_frequent(expression: str, frequent: bool) -> None:
    window = Window(instant("UTC", "2026-03-02 00:00"), 48)
    assert estimate_starts(cron(expression), 0, window).is_frequent(window) is frequent
