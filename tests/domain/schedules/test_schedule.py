"""Schedules of every type: next instants, bounds, and errors of users."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.domain.enums import ScheduleType
from app.domain.schedules import schedule as schedule_module
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.schedule import (
    Schedule,
    check_schedule,
    next_after_ms,
    next_times,
    pauses_with_clocks,
    zone,
)
from app.errors import InvalidInput
from tests.support.domain_schedules import BERLIN, LORD_HOWE, NEW_YORK, SHANGHAI, ms
from tests.support.truth_table import truth_table


def schedule(type_: ScheduleType, conf: str = "", time_zone: str = SHANGHAI, **bounds: int) -> Schedule:
    return Schedule(type_, conf, time_zone, **bounds)


NOW = ms("2025-06-01 10:00:00.250")


@truth_table(
    "type_, conf, expected",
    [
        (ScheduleType.NONE, "", None),
        (ScheduleType.CRON, "0 0/15 * * * ?", ms("2025-06-01 10:15")),
        (ScheduleType.CRON, "* * * * * ?", ms("2025-06-01 10:00:01")),
        (ScheduleType.CRON, "*/15 * * * *", ms("2025-06-01 10:15")),
        (ScheduleType.CRON, "0 9 * * MON", ms("2025-06-02 09:00")),
        (ScheduleType.CRON, "0 0 30 2 *", None),
        (ScheduleType.CRON, "0 0 0 1 1 ? 2020", None),
        (ScheduleType.FIX_RATE, "30", NOW + 30_000),
        (ScheduleType.FIX_RATE, "2147484", NOW + 2_147_484_000),
        (ScheduleType.FIX_RATE, "9999999999", NOW + 9_999_999_999_000),
        (ScheduleType.FIX_DELAY, "1", NOW + 1_000),
        (ScheduleType.AT, "2025-06-01 10:00:01", ms("2025-06-01 10:00:01")),
        (ScheduleType.AT, "2025-06-01 10:00:00", None),
    ],
)
def test_the_next_instant_is_strictly_after(type_: ScheduleType, conf: str, expected: int | None) -> None:
    check_schedule(schedule(type_, conf))
    assert next_after_ms(schedule(type_, conf), NOW) == expected


def test_an_instant_is_not_after_itself() -> None:
    for type_, conf in [
        (ScheduleType.CRON, "0 0 10 * * ?"),
        (ScheduleType.CRON, "0 10 * * *"),
        (ScheduleType.AT, "2025-06-01 10:00:00"),
    ]:
        instant = ms("2025-06-01 10:00")
        assert next_after_ms(schedule(type_, conf), instant - 1) == instant
        assert next_after_ms(schedule(type_, conf), instant) != instant


@truth_table(
    "type_, conf, after, not_before, expected",
    [
        (ScheduleType.CRON, "0 0 * * * ?", "10:00", "12:00:00", "12:00:00"),
        (ScheduleType.CRON, "0 0 * * * ?", "10:00", "12:00:00.001", "13:00:00"),
        (ScheduleType.CRON, "0 0 * * * ?", "12:30", "12:00:00", "13:00:00"),
        (ScheduleType.CRON, "0 * * * *", "10:00", "12:00:00", "12:00:00"),
        (ScheduleType.FIX_RATE, "60", "10:00", "12:00:00", "12:00:00"),
        (ScheduleType.FIX_RATE, "60", "12:00", "12:00:00", "12:01:00"),
        (ScheduleType.FIX_DELAY, "60", "10:00", "10:00:30", "10:01:00"),
        (ScheduleType.AT, "2025-06-01 12:00:00", "10:00", "12:00:00", "12:00:00"),
        (ScheduleType.AT, "2025-06-01 12:00:00", "10:00", "12:00:01", None),
    ],
)
def test_nothing_fires_before_the_window(
    type_: ScheduleType, conf: str, after: str, not_before: str, expected: str | None
) -> None:
    found = next_after_ms(
        schedule(type_, conf, not_before_ms=ms(f"2025-06-01 {not_before}")), ms(f"2025-06-01 {after}")
    )
    assert found == (expected and ms(f"2025-06-01 {expected}"))


@truth_table(
    "type_, conf",
    [
        (ScheduleType.CRON, "0 0 * * * ?"),
        (ScheduleType.CRON, "0 * * * *"),
        (ScheduleType.FIX_RATE, "3600"),
        (ScheduleType.AT, "2025-06-01 11:00:00"),
    ],
)
def test_nothing_fires_after_the_window(type_: ScheduleType, conf: str) -> None:
    ten, eleven = ms("2025-06-01 10:00"), ms("2025-06-01 11:00")
    assert next_after_ms(schedule(type_, conf, not_after_ms=eleven), ten) == eleven
    assert next_after_ms(schedule(type_, conf, not_after_ms=eleven - 1), ten) is None
    assert next_times(schedule(type_, conf, not_after_ms=eleven), ten) == [eleven]


def test_the_preview_is_a_chain() -> None:
    assert next_times(schedule(ScheduleType.CRON, "0 0 12 * * ?"), NOW, 3) == [
        ms(f"2025-06-0{day} 12:00") for day in (1, 2, 3)
    ]
    assert next_times(schedule(ScheduleType.FIX_RATE, "10"), NOW) == [NOW + 10_000 * n for n in range(1, 6)]
    assert next_times(schedule(ScheduleType.AT, "2025-06-02 00:00:00"), NOW) == [ms("2025-06-02 00:00")]
    assert next_times(schedule(ScheduleType.NONE), NOW) == []
    assert next_times(schedule(ScheduleType.CRON, "* * * * * ?"), NOW, 0) == []


@truth_table(
    "conf, time_zone, expected",
    [
        ("2025-03-09 02:30:00", NEW_YORK, ms("2025-03-09 03:00", NEW_YORK)),
        ("2026-03-29 02:00:00", BERLIN, ms("2026-03-29 03:00", BERLIN)),
        ("2025-10-05 02:29:59", LORD_HOWE, ms("2025-10-05 02:30", LORD_HOWE)),
        ("2011-12-30 12:00:00", "Pacific/Apia", ms("2011-12-31 00:00", "Pacific/Apia")),
        ("2025-11-02 01:30:00", NEW_YORK, ms("2025-11-02 01:30", NEW_YORK, fold=0)),
        ("2026-10-25 02:30:00", BERLIN, ms("2026-10-25 02:30", BERLIN, fold=0)),
        ("2025-04-06 01:45:00", LORD_HOWE, ms("2025-04-06 01:45", LORD_HOWE, fold=0)),
    ],
)
def test_a_time_in_a_clock_change_means_the_first_valid_instant(
    conf: str, time_zone: str, expected: int
) -> None:
    assert next_after_ms(schedule(ScheduleType.AT, conf, time_zone), 0) == expected


@truth_table(
    "expression, time_zone, after, expected",
    [
        (
            "30 2 * * *",
            NEW_YORK,
            "2025-03-08 12:00",
            ["2025-03-09T03:00:00-04:00", "2025-03-10T02:30:00-04:00"],
        ),
        (
            "*/30 * * * *",
            NEW_YORK,
            "2025-03-09 01:00",
            ["2025-03-09T01:30:00-05:00", "2025-03-09T03:00:00-04:00"],
        ),
        (
            "30 1 * * *",
            NEW_YORK,
            "2025-11-01 12:00",
            ["2025-11-02T01:30:00-04:00", "2025-11-03T01:30:00-05:00"],
        ),
        (
            "0-59/20 2 * * *",
            BERLIN,
            "2026-10-25 02:30",
            ["2026-10-25T02:40:00+02:00", "2026-10-26T02:00:00+01:00"],
        ),
        (
            "0 * * * *",
            NEW_YORK,
            "2025-11-02 00:30",
            ["2025-11-02T01:00:00-04:00", "2025-11-02T01:00:00-05:00", "2025-11-02T02:00:00-05:00"],
        ),
        (
            "15 2 * * *",
            LORD_HOWE,
            "2025-10-04 12:00",
            ["2025-10-05T02:30:00+11:00", "2025-10-06T02:15:00+11:00"],
        ),
        (
            "45 1 * * *",
            LORD_HOWE,
            "2025-04-05 12:00",
            ["2025-04-06T01:45:00+11:00", "2025-04-07T01:45:00+10:30"],
        ),
    ],
)
def test_five_fields_at_a_clock_change(
    expression: str, time_zone: str, after: str, expected: list[str]
) -> None:
    times = next_times(
        schedule(ScheduleType.CRON, expression, time_zone), ms(after, time_zone), len(expected)
    )
    assert [
        datetime.fromtimestamp(time / 1000, ZoneInfo(time_zone)).isoformat() for time in times
    ] == expected


@truth_table(
    "expression, same_as",
    [
        ("0 9-9 * * *", "0 9 * * *"),
        ("30-30/7 9 * * *", "30 9 * * *"),
        ("0 9 5-5 * *", "0 9 5 * *"),
        ("0 9 * MAR-3 *", "0 9 * 3 *"),
        ("0 9 * * 1-1,FRI-FRI", "0 9 * * 1,5"),
        ("0 9 * * 7-7", "0 9 * * 0"),
        ("0 9 * * 7-0,7-SUN/2", "0 9 * * 0"),
        ("0 9 * * 7-2/2", "0 9 * * 0,2"),
        ("0 20-8/3 * * *", "0 20,23,2,5,8 * * *"),
        ("50-10/7 * * * *", "50,57,4 * * * *"),
        ("0 9 28-3/2 * *", "0 9 28,30,1,3 * *"),
        ("0 9 * NOV-FEB/2 *", "0 9 * 11,1 *"),
        ("0 9 * * FRI-MON/2", "0 9 * * 5,0"),
        ("0 9 * * 4-1/2", "0 9 * * 4,6,1"),
    ],
)
def test_ranges_of_five_fields(expression: str, same_as: str) -> None:
    """As in cron: a range of one value is that value, and steps go on where a range wraps."""
    times, expected = (
        next_times(schedule(ScheduleType.CRON, text, SHANGHAI), ms("2025-06-01 00:00", SHANGHAI), 100)
        for text in (expression, same_as)
    )
    assert times == expected


@truth_table(
    "type_, conf, time_zone, field, hint",
    [
        (ScheduleType.CRON, "0 0 24 * * ?", SHANGHAI, "scheduleConf", "hour '24': use 0-23"),
        (ScheduleType.CRON, "0 L 11 * * ?", SHANGHAI, "scheduleConf", "minute 'L': no value in it"),
        (ScheduleType.CRON, "61 * * * *", SHANGHAI, "scheduleConf", "five fields"),
        (ScheduleType.CRON, "0 9-9/0 * * *", SHANGHAI, "scheduleConf", "step '0'"),
        (ScheduleType.CRON, "R * * * *", SHANGHAI, "scheduleConf", "random"),
        (ScheduleType.CRON, "H(0-29)/10 * * * *", SHANGHAI, "scheduleConf", "random"),
        (ScheduleType.CRON, "@often", SHANGHAI, "scheduleConf", "5, 6 or 7 fields"),
        (ScheduleType.CRON, " ", SHANGHAI, "scheduleConf", "Enter a cron expression"),
        (ScheduleType.CRON, "0 0 0 * * ?" + " *" * 60, SHANGHAI, "scheduleConf", "at most 128"),
        (ScheduleType.FIX_RATE, "0", SHANGHAI, "scheduleConf", "1 or more"),
        (ScheduleType.FIX_RATE, "-5", SHANGHAI, "scheduleConf", "1 or more"),
        (ScheduleType.FIX_RATE, "1.5", SHANGHAI, "scheduleConf", "whole number"),
        (ScheduleType.FIX_RATE, "12345678901", SHANGHAI, "scheduleConf", "10 digits"),
        (ScheduleType.FIX_RATE, "٣", SHANGHAI, "scheduleConf", "whole number"),
        (ScheduleType.FIX_DELAY, "", SHANGHAI, "scheduleConf", "whole number"),
        (ScheduleType.AT, "2025-02-30 00:00:00", SHANGHAI, "scheduleConf", "yyyy-MM-dd HH:mm:ss"),
        (ScheduleType.AT, "2025-06-01T00:00:00", SHANGHAI, "scheduleConf", "yyyy-MM-dd HH:mm:ss"),
        (ScheduleType.AT, "2025-06-01 24:00:00", SHANGHAI, "scheduleConf", "yyyy-MM-dd HH:mm:ss"),
        (ScheduleType.AT, "0000-01-01 00:00:00", SHANGHAI, "scheduleConf", "yyyy-MM-dd HH:mm:ss"),
        ("WEEKLY", "", SHANGHAI, "scheduleType", "FIX_RATE"),
        (ScheduleType.NONE, "", "Mars/Olympus", "timeZone", "Mars/Olympus"),
    ],
)
def test_an_invalid_schedule_is_refused_with_its_field(
    type_: ScheduleType, conf: str, time_zone: str, field: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_schedule(schedule(type_, conf, time_zone))
    assert caught.value.field == field
    assert hint in caught.value.message


@truth_table(
    "type_, conf",
    [
        (ScheduleType.CRON, "0 0 25 * * ?"),
        (ScheduleType.FIX_RATE, "0"),
        (ScheduleType.AT, "2025-02-30 00:00:00"),
    ],
)
def test_an_unknown_zone_does_not_hide_what_else_is_wrong(type_: ScheduleType, conf: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_schedule(schedule(type_, conf, "Mars/Olympus", not_before_ms=5, not_after_ms=4))
    assert [each.field for each in caught.value.errors] == ["timeZone", "scheduleConf", "notAfter"]


@truth_table("type_", [ScheduleType.CRON, ScheduleType.AT])
def test_an_unknown_zone_is_named_once(type_: ScheduleType) -> None:
    conf = "0 0 2 * * ?" if type_ is ScheduleType.CRON else "2030-01-01 00:00:00"
    with pytest.raises(InvalidInput) as caught:
        check_schedule(schedule(type_, conf, "Mars/Olympus"))
    assert [each.field for each in caught.value.errors] == ["timeZone"]


def test_a_window_must_not_end_before_it_starts() -> None:
    check_schedule(schedule(ScheduleType.NONE, not_before_ms=5, not_after_ms=5))
    check_schedule(schedule(ScheduleType.NONE, not_before_ms=5, not_after_ms=0))
    with pytest.raises(InvalidInput) as caught:
        check_schedule(schedule(ScheduleType.NONE, not_before_ms=5, not_after_ms=4))
    assert caught.value.field == "notAfter"


@truth_table(
    "type_, conf, time_zone",
    [
        (ScheduleType.CRON, "broken", SHANGHAI),
        (ScheduleType.CRON, "0 0 0 * * ?", "Mars/Olympus"),
        (ScheduleType.CRON, "0 0 * * *", ""),
        (ScheduleType.FIX_RATE, "soon", SHANGHAI),
        (ScheduleType.FIX_DELAY, "", SHANGHAI),
        (ScheduleType.AT, "tomorrow", SHANGHAI),
        (ScheduleType.AT, "2025-06-01 00:00:00", "../etc"),
    ],
)
def test_any_unreadable_schedule_is_one_error_for_the_scan(
    type_: ScheduleType, conf: str, time_zone: str
) -> None:
    with pytest.raises(InvalidCronExpression):
        next_after_ms(schedule(type_, conf, time_zone), NOW)


@truth_table(
    "name",
    [
        "",
        ".",
        "/",
        "America",
        "../../etc/passwd",
        "/etc/localtime",
        "a\0b",
        "x" * 5000,
        "localtime",
        "\ud800",
        "zone.tab",
    ],
)
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        zone(name)
    assert caught.value.field == "timeZone"


def test_a_time_zone_is_read_once() -> None:
    assert zone(SHANGHAI) is zone(SHANGHAI)


def test_many_equal_crons_share_one_search() -> None:
    herd = schedule(ScheduleType.CRON, "0 7 3 * * ?")
    misses = schedule_module._next_cron_ms.cache_info().misses
    assert {next_after_ms(herd, NOW + offset_ms) for offset_ms in range(700)} == {ms("2025-06-02 03:07")}
    assert schedule_module._next_cron_ms.cache_info().misses == misses + 1


@truth_table("type_", [ScheduleType.CRON, ScheduleType.AT])
def test_the_last_datetime_is_not_an_error(type_: ScheduleType) -> None:
    for conf in (
        ("* * * * * ?", "* * * * *")
        if type_ is ScheduleType.CRON
        else ("2025-06-01 00:00:00", "9998-12-31 23:59:59")
    ):
        assert next_after_ms(schedule(type_, conf, NEW_YORK), 2**63 - 1) is None


@truth_table("conf", ["9999-01-01 00:00:00", "9999-12-31 23:59:59", "1969-12-31 23:59:59"])
def test_a_time_at_the_limits_of_the_calendar_is_refused(conf: str) -> None:
    with pytest.raises(InvalidInput):
        check_schedule(Schedule(ScheduleType.AT, conf, "America/New_York"))


@truth_table("name", ["right/UTC", "posix/UTC", "Factory"])
def test_a_zone_with_other_rules_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        zone(name)


@truth_table(
    "conf, problem",
    [
        (
            "CRON_TZ=Asia/Tokyo 0 9 * * *",
            "set Asia/Tokyo as time zone of the job, and leave only 0 9 * * * here",
        ),
        ("tz=UTC 0 0 9 * * ?", "set UTC as time zone of the job, and leave only 0 0 9 * * ? here"),
        ("@daily", "use 0 0 * * *"),
        (" @Hourly ", "use 0 * * * *"),
        (
            "\u200b0 0 9 * * ?",
            "it contains the invisible character U+200B; only blanks may separate the fields",
        ),
        (
            "0\u00a00 9 * * ?",
            "it contains the invisible character U+00A0; only blanks may separate the fields",
        ),
        ("@often", "5, 6 or 7 fields are needed, got 1"),
        ("0 0 25 * * ?", "use 0-23"),
    ],
)
def test_a_refusal_says_what_would_be_right(conf: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        check_schedule(schedule(ScheduleType.CRON, conf))
    assert str(raised.value).endswith(f": {problem}")


def test_an_invisible_character_that_xxl_job_ignores_is_accepted() -> None:
    check_schedule(schedule(ScheduleType.CRON, "0 0 9 * * ?\u200b"))


@truth_table(
    "conf, time_zone, expected",
    [
        ("0 0/5 * * * ?", NEW_YORK, True),
        ("0 0/5 0-23 * * ?", NEW_YORK, True),
        ("*/5 * * * *", NEW_YORK, False),
        ("0 30 1 * * ?", NEW_YORK, False),
        ("0 0/5 * * * ?", SHANGHAI, False),
    ],
)
def test_six_fields_of_each_hour_pause_when_clocks_go_back(conf: str, time_zone: str, expected: bool) -> None:
    cron = schedule(ScheduleType.CRON, conf, time_zone)
    assert pauses_with_clocks(cron, now_ms=NOW) is expected


@truth_table("conf, pause_s", [("0 0/5 * * * ?", 3_900), ("*/5 * * * *", 300)])
def test_the_pause_is_an_hour(conf: str, pause_s: int) -> None:
    before_ms = ms("2025-11-02 00:55", NEW_YORK)
    assert next_times(schedule(ScheduleType.CRON, conf, NEW_YORK), before_ms, 1) == [
        before_ms + pause_s * 1_000
    ]
