"""Starts per quarter of an hour, counted without stepping: the same as when one steps from fire to fire."""

from collections import Counter
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import planned_starts
from app.domain.cron.fields import InvalidCronExpression
from app.domain.enums import ScheduleType
from app.domain.planned_starts import (
    QUARTER_MS,
    CronStarts,
    RepeatedStarts,
    Window,
    bounded_starts,
    counts_in,
    cron_starts,
    hours_of,
    next_days,
    repeated_starts,
    single_start,
    total_starts,
)
from app.domain.schedule import Schedule, next_after_ms
from tests.domain.test_cron_property import DAYS, noon_ms, quartz, unix

#: hours around a noon next to which clocks change
WINDOW_QUARTERS = 18 * 4


def instant(zone: str, local: str) -> int:
    return int(datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


def stepped(schedule: Schedule, window: Window) -> list[int]:
    """Count by stepping."""
    counts, at = Counter[int](), next_after_ms(schedule, window.from_ms - 1)
    while at is not None and at < window.until_ms:
        counts[(at - window.from_ms) // QUARTER_MS] += 1
        at = next_after_ms(schedule, at)
    return [counts[quarter] for quarter in range(window.quarters)]


def counted(schedule: Schedule, window: Window) -> list[int]:
    starts = bounded_starts(
        schedule.conf, schedule.time_zone, schedule.not_before_ms, schedule.not_after_ms, window
    )
    return total_starts([(starts, 1)], (), window)


def cron(expression: str, zone: str = "UTC", **bounds: int) -> Schedule:
    return Schedule(ScheduleType.CRON, expression, zone, **bounds)


windows = st.builds(
    lambda day, quarters: (
        day[0],
        Window(noon_ms(*day) // QUARTER_MS * QUARTER_MS + quarters * QUARTER_MS, WINDOW_QUARTERS),
    ),
    st.sampled_from(DAYS),
    st.integers(0, 70),
)


@settings(max_examples=80, deadline=None)
@given(quartz, windows)
def test_six_fields_count_as_stepping_does(expression: str, where: tuple[str, Window]) -> None:
    zone, window = where
    schedule = cron(expression, zone)
    assert counted(schedule, window) == stepped(schedule, window)


@settings(max_examples=40, deadline=None)
@given(unix, windows)
def test_five_fields_count_as_stepping_does(expression: str, where: tuple[str, Window]) -> None:
    zone, window = where
    schedule = cron(expression, zone)
    assert counted(schedule, window) == stepped(schedule, window)


@settings(max_examples=40, deadline=None)
@given(quartz, windows, st.integers(-3_600_000, 80_000_000), st.integers(0, 50_000_000))
def test_bounds_inside_the_window_are_kept(
    expression: str, where: tuple[str, Window], after_ms: int, open_ms: int
) -> None:
    zone, window = where
    begin = window.from_ms + after_ms
    schedule = cron(expression, zone, not_before_ms=begin, not_after_ms=begin + open_ms)
    assert counted(schedule, window) == stepped(schedule, window)


@pytest.mark.parametrize(
    ("expression", "zone", "day", "sums"),
    [
        ("* * * * * ?", "UTC", "2026-05-04", dict.fromkeys(range(24), 3600)),
        ("0/30 * * * * ?", "Asia/Shanghai", "2026-05-04", dict.fromkeys(range(24), 120)),
        ("0 0 3 * * ?", "Europe/Berlin", "2026-05-04", {3: 1}),
        # a Saturday, and the first of a month
        ("0 0 9-17 ? * MON-FRI", "UTC", "2026-05-02", {}),
        ("0 0 0 1 * ?", "UTC", "2026-05-01", {0: 1}),
        # clocks go from 2 to 3, and from 3 to 2
        ("0 0/15 2 * * ?", "Europe/Berlin", "2026-03-29", {}),
        ("0 0/15 1-3 * * ?", "Europe/Berlin", "2026-03-29", {1: 4, 3: 4}),
        ("0 0/15 2 * * ?", "Europe/Berlin", "2026-10-25", {2: 4}),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", {3: 1}),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25", {2: 1}),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25", {hour: 4 if hour == 2 else 2 for hour in range(24)}),
    ],
)
def test_starts_per_hour_of_a_day(expression: str, zone: str, day: str, sums: dict[int, int]) -> None:
    window = next_days(instant(zone, f"{day}T00:00:00") - 1, zone, days=1)
    found = counted(cron(expression, zone), window)
    hours = {at.hour: sum(found[quarter] for quarter in at.quarters) for at in hours_of(window, zone)}
    assert {hour: count for hour, count in hours.items() if count} == sums


def test_hours_are_those_of_the_reader() -> None:
    window = next_days(instant("Asia/Kolkata", "2026-05-04T22:10:00"), "Asia/Kolkata", days=2)
    assert window.from_ms == instant("Asia/Kolkata", "2026-05-04T23:00:00")
    hours = hours_of(window, "Asia/Kolkata")
    assert len(hours) == 25
    assert (hours[0].day, hours[0].hour, hours[-1].day, hours[-1].hour) == (
        date(2026, 5, 4),
        23,
        date(2026, 5, 5),
        23,
    )
    # 3:45 in UTC is 9:15 there
    found = counted(cron("0 45 3 * * ?"), window)
    assert [at.hour for at in hours if any(found[quarter] for quarter in at.quarters)] == [9]


def test_the_last_hour_of_an_evening_leads_to_the_next_day() -> None:
    window = next_days(instant("UTC", "2026-05-04T23:10:00"), "UTC", days=7)
    assert (window.from_ms, window.quarters) == (instant("UTC", "2026-05-05T00:00:00"), 7 * 96)


@pytest.mark.parametrize("shift_days", [0, 7])
def test_hours_of_a_day_whose_clock_changes(shift_days: int) -> None:
    # Lord Howe moves its clocks by half an hour
    window = next_days(
        instant("Australia/Lord_Howe", "2026-04-04T23:30:00") + shift_days * 86_400_000,
        "Australia/Lord_Howe",
        days=1,
    )
    lengths = {at.hour: len(at.quarters) for at in hours_of(window, "Australia/Lord_Howe")}
    assert lengths == {hour: 6 if (hour, shift_days) == (1, 0) else 4 for hour in range(24)}


PERIODS = st.tuples(
    st.sampled_from(["1", "60", "900", "901", "3600", "5000", "200000", "9999999999"]),
    st.integers(0, 200_000_000),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(PERIODS, max_size=5),
    st.integers(-5, 5),
    st.sampled_from([0, 20_000_000]),
    st.sampled_from([0, 50_000_000, 300_000_000]),
)
def test_fixed_periods_count_as_stepping_does(
    jobs: list[tuple[str, int]], early: int, not_before: int, not_after: int
) -> None:
    window = Window(2_000_000 * QUARTER_MS, 120)
    made, wanted = [], [0] * window.quarters
    for conf, offset_ms in jobs:
        next_ms = window.from_ms + early * 1_000_000 + offset_ms
        # each has its own bounds, and some none
        begin_ms = window.from_ms + not_before + offset_ms % 7_000_000 if not_before and offset_ms % 3 else 0
        end_ms = window.from_ms + not_after + offset_ms % 9_000_000 if not_after and offset_ms % 4 else 0
        starts = repeated_starts(conf, next_ms, window, not_before_ms=begin_ms, not_after_ms=end_ms)
        made.append(starts)
        expected, at = [0] * window.quarters, next_ms
        period = int(conf) * 1000
        while at < window.until_ms and not 0 < end_ms < at:
            if at >= max(window.from_ms, begin_ms):
                expected[(at - window.from_ms) // QUARTER_MS] += 1
            at += period if at >= window.from_ms else max(period, (window.from_ms - at) // period * period)
        assert [counts_in([starts], (quarter,), window)[0] for quarter in range(window.quarters)] == expected
        wanted = [one + other for one, other in zip(wanted, expected, strict=True)]
    assert total_of(made, window) == wanted


def total_of(made: list[CronStarts | RepeatedStarts], window: Window) -> list[int]:
    crons = [(starts, 1) for starts in made if isinstance(starts, CronStarts)]
    return total_starts(crons, [starts for starts in made if isinstance(starts, RepeatedStarts)], window)


def test_a_single_instant_counts_once_and_only_inside() -> None:
    window, at = Window(4 * QUARTER_MS, 8), 5 * QUARTER_MS
    found = {
        time: single_start(f"1970-01-01 {time}", "UTC", 0, 0, window).single
        for time in ("00:59:59", "01:00:00", "02:59:59", "03:00:00")
    }
    assert found == {"00:59:59": (), "01:00:00": ((0, 1),), "02:59:59": ((7, 1),), "03:00:00": ()}
    bounds = {(at, at): ((1, 1),), (at + 1, 0): (), (0, at - 1): (), (0, at): ((1, 1),)}
    assert {
        each: single_start("1970-01-01 01:15:00", "UTC", *each, window).single for each in bounds
    } == bounds
    with pytest.raises(InvalidCronExpression):
        single_start("tomorrow", "UTC", 0, 0, window)


def test_one_schedule_is_counted_in_some_quarters_alone() -> None:
    window = next_days(instant("Europe/Berlin", "2026-10-24T23:30:00"), "Europe/Berlin", days=1)
    for schedule in (
        cron("0 0/20 1-2 * * ?", "Europe/Berlin"),
        cron("*/20 1,2 * * *", "Europe/Berlin"),
        cron("0 0/7 * * * ?"),
    ):
        starts, totals = cron_starts(schedule.conf, schedule.time_zone, window), counted(schedule, window)
        assert [counts_in([starts], (quarter,), window)[0] for quarter in range(window.quarters)] == totals
        assert counts_in([starts], range(window.quarters), window) == [sum(totals)]


@pytest.mark.parametrize("expression", ["", "* *", "0 0 25 * * ?", "0 0 0 * * *", "H * * * *", "a b c d e"])
def test_what_cannot_be_read_is_refused(expression: str) -> None:
    with pytest.raises(InvalidCronExpression):
        cron_starts(expression, "UTC", Window(0, 96))


def test_many_jobs_of_one_schedule_count_each() -> None:
    window = Window(0, 4)
    starts = cron_starts("0 5 0 * * ?", "UTC", window)
    assert total_starts([(starts, 10_000), (cron_starts("0 20 * * * ?", "UTC", window), 3)], (), window) == [
        10_000,
        3,
        0,
        0,
    ]


def test_nearest_workdays_behind_the_end_of_a_month_are_left_out_as_by_the_scheduler() -> None:
    # 2027-05-01 and 2028-07-01 are Saturdays: a search that begins inside the month before finds its last day
    for expression, begin, days in (
        ("0 0 9 31W * ?", "2027-04-25", []),
        ("0 0 9 31W * ?", "2027-05-25", [date(2027, 5, 31)]),
        ("0 0 9 30W * ?", "2027-04-25", [date(2027, 4, 30)]),
        ("0 0 9 31W * ?", "2028-06-25", []),
        ("0 0 9 31W * ?", "2028-07-25", [date(2028, 7, 31)]),
        ("0 0 9 1W * ?", "2027-04-25", []),
        ("0 0 9 1W * ?", "2028-06-30", [date(2028, 7, 3)]),
    ):
        window = next_days(instant("UTC", f"{begin}T00:30:00"), "UTC", days=7)
        found = counted(cron(expression), window)
        assert [
            hour.day for hour in hours_of(window, "UTC") if any(found[at] for at in hour.quarters)
        ] == days, (expression, begin)


def test_what_a_bound_leaves_of_a_week_is_told_by_days_where_it_can_be() -> None:
    window = next_days(instant("UTC", "2026-05-03T23:30:00"), "UTC", days=7)
    begin, end = (instant("UTC", f"2026-05-0{day}T12:00:00") for day in (5, 9))
    starts = bounded_starts("0 0/15 * * * ?", "UTC", begin, end, window)
    assert (starts.days, len(starts.single)) == (0b11100, 48 + 49)
    assert counts_in([starts], range(window.quarters), window) == [4 * 96 + 1]


def test_what_is_stepped_near_a_change_of_clocks_is_kept_for_other_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zone, expression = "Europe/Berlin", "7-59/13 1-23 * * *"
    early, late = (next_days(instant(zone, f"2026-10-{day}T08:10:00"), zone, days=7) for day in (20, 22))
    found = counted(cron(expression, zone), early)
    monkeypatch.setattr(planned_starts, "_stepped", lambda *_args: pytest.fail("stepped again"))
    again = total_starts([(cron_starts(expression, zone, late), 1)], (), late)
    shift = (late.from_ms - early.from_ms) // QUARTER_MS
    assert again[: early.quarters - shift] == found[shift:]
