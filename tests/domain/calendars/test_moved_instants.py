"""Effective instants of a calendar: what it leaves, and where it moves the others."""

from datetime import date

from app.clock import DAY_MS, Millis
from app.domain.calendars.blackouts import Blackout
from app.domain.calendars.calendar import Calendar, UnknownDays
from app.domain.calendars.effective import JobRules, Merge, starts_on
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms
from tests.support.domain_calendars import CHINA, HOLIDAY, days, rule, ruled, starts
from tests.support.domain_schedules import BERLIN, LORD_HOWE, NEW_YORK, SHANGHAI, ms
from tests.support.truth_table import truth_table

SAO_PAULO, APIA = "America/Sao_Paulo", "Pacific/Apia"
CRON, RATE, AT = ScheduleType.CRON, ScheduleType.FIX_RATE, ScheduleType.AT
WEEK = Calendar("week")
ALL_OFF = Calendar("off", frozenset(range(1, 8)))
LONG = Calendar("long", frozenset(), days(HOLIDAY, "2026-03-01..2026-04-09"))
CLOSED = Calendar("closed", valid_until=date(2026, 12, 31), unknown=UnknownDays.HOLIDAY)
NINE = "0 0 9 * * ?"


def off(*spans: str) -> Calendar:
    """Return a calendar of workdays with these days off."""
    return Calendar("off", frozenset(), days(HOLIDAY, *spans))


def at(text: str) -> Millis:
    """Return the beginning of a day such as "10-01", of 2026 unless it has a year; or "10-01 09:00"."""
    return ms(text if text.startswith("20") else f"2026-{text}", SHANGHAI)


@truth_table(
    "conf, calendar, text, dates, expected",
    [
        # skip
        (NINE, CHINA, "workdays", "09-30..10-10", "09-30 09:00, 10-08 09:00, 10-09 09:00, 10-10 09:00"),
        (NINE, CHINA, "holidays", "10-06..10-11", "10-06 09:00, 10-07 09:00, 10-11 09:00"),
        ("0 9 * * *", CHINA, "workdays", "10-10..10-13", "10-10 09:00, 10-12 09:00, 10-13 09:00"),
        ("0 0 9 ? * SUN", CHINA, "workdays", "09-01..12-31", "09-20 09:00, end"),
        ("0 0 0,12 * * ?", CHINA, "workdays", "10-07..10-08", "10-08 00:00, 10-08 12:00"),
        (
            "0 0 9 31 * ?",
            WEEK,
            "workdays",
            "01-01..12-31",
            "03-31 09:00, 07-31 09:00, 08-31 09:00, 12-31 09:00",
        ),
        # next and previous
        (
            "0 0 9 1 * ?",
            CHINA,
            "workdays next",
            "09-01..11-30",
            "09-01 09:00, 10-08 09:00 (10-01 09:00), 11-02 09:00 (11-01 09:00)",
        ),
        ("0 0 9 5 10 ?", CHINA, "workdays previous", "09-01..11-30", "09-30 09:00 (10-05 09:00)"),
        (
            "0 0 9 31 * ?",
            WEEK,
            "workdays next",
            "01-01..09-30",
            "02-02 09:00 (01-31 09:00), 03-31 09:00, 06-01 09:00 (05-31 09:00), 07-31 09:00, 08-31 09:00",
        ),
        (
            "0 0 9 L * ?",
            WEEK,
            "workdays previous",
            "02-01..05-31",
            "02-27 09:00 (02-28 09:00), 03-31 09:00, 04-30 09:00, 05-29 09:00 (05-31 09:00)",
        ),
        ("0 0 9 29 2 ?", WEEK, "workdays next", "2028-01-01..2028-12-31", "02-29 09:00"),
        ("0 0 9 ? * SAT", CHINA, "holidays next", "10-09..10-17", "10-11 09:00 (10-10 09:00), 10-17 09:00"),
        ("0 0 9 ? * SAT", CHINA, "workdays previous", "09-19..09-20", ""),
        ("0 0 9 ? * SAT", CHINA, "workdays next", "09-19..09-20", "09-20 09:00 (09-19 09:00)"),
        # those at one time are one: its own, and of two the earlier
        (NINE, CHINA, "workdays next", "09-30..10-09", "09-30 09:00, 10-08 09:00, 10-09 09:00"),
        (NINE, CHINA, "workdays previous", "09-29..10-08", "09-29 09:00, 09-30 09:00, 10-08 09:00"),
        ("0 0 9 2,5 10 ?", CHINA, "workdays next", "09-30..10-09", "10-08 09:00 (10-02 09:00)"),
        ("0 0 9 2,5 10 ?", CHINA, "workdays previous", "09-29..10-09", "09-30 09:00 (10-02 09:00)"),
        # times of day are kept, in order, between those of the day itself
        ("0 0 8,20 7,8 10 ?", CHINA, "workdays next", "10-07..10-09", "10-08 08:00, 10-08 20:00"),
        ("0 30 23 7 10 ?", CHINA, "workdays next", "10-07..10-09", "10-08 23:30 (10-07 23:30)"),
        ("0 0 0 7 10 ?", CHINA, "workdays previous", "09-29..10-09", "09-30 00:00 (10-07 00:00)"),
        # 31 days at most
        ("0 0 9 9 3 ?", LONG, "workdays next", "03-01..04-30", ""),
        ("0 0 9 10 3 ?", LONG, "workdays next", "03-01..04-30", "04-10 09:00 (03-10 09:00)"),
        ("0 0 9 31 3 ?", LONG, "workdays previous", "02-01..04-30", "02-28 09:00 (03-31 09:00)"),
        ("0 0 9 1 4 ?", LONG, "workdays previous", "02-01..04-30", ""),
        # the n-th day of a month
        (NINE, CHINA, "workdays 1", "10-01..11-30", "10-08 09:00, 11-02 09:00"),
        (NINE, CHINA, "workdays 3", "10-01..11-30", "10-10 09:00, 11-04 09:00"),
        (NINE, CHINA, "workdays -1", "09-01..10-31", "09-30 09:00, 10-30 09:00"),
        ("0 0 9 ? * MON-FRI", CHINA, "workdays 3", "10-01..11-30", "11-04 09:00"),
        (NINE, WEEK, "workdays 23", "01-01..12-31", "07-31 09:00, 12-31 09:00"),
        # unknown days
        (NINE, CHINA, "workdays", "2026-12-31..2027-01-04", "12-31 09:00, 01-01 09:00, 01-04 09:00"),
        # none within two years
        (NINE, ALL_OFF, "workdays", "01-01..12-31", "end"),
        (NINE, ALL_OFF, "workdays next", "01-01..12-31", "end"),
        (NINE, CLOSED, "workdays", "2026-12-31..2027-12-31", "12-31 09:00, end"),
        (NINE, CLOSED, "workdays previous", "2026-12-31..2027-12-31", "12-31 09:00, end"),
        ("0 0 9 1 1 ?", off("2026-01-01..2031-12-31"), "workdays 1", "01-01..12-31", "end"),
    ],
)
def test_a_calendar_leaves_or_moves_instants(
    conf: str, calendar: Calendar, text: str, dates: str, expected: str
) -> None:
    schedule = ruled(conf, JobRules(rule(calendar, text)), SHANGHAI)
    first, last = dates.split("..")
    assert starts(schedule, at(first) - 1, at(last) + DAY_MS - 1) == expected


@truth_table(
    "conf, zone, day_off, text, expected",
    [
        # no such time: the first after the gap
        ("0 30 2 28 * ?", BERLIN, "2026-03-28", "next", "03-29 03:00 (03-28 02:30)"),
        ("0 30 2 30 * ?", BERLIN, "2026-03-30", "previous", "03-29 03:00 (03-30 02:30)"),
        ("0 0,30 2 28 * ?", BERLIN, "2026-03-28", "next", "03-29 03:00 (03-28 02:00)"),
        ("0 30 2 7 3 ?", NEW_YORK, "2026-03-07", "next", "03-08 03:00 (03-07 02:30)"),
        ("0 15 2 3 10 ?", LORD_HOWE, "2026-10-03", "next", "10-04 02:30 (10-03 02:15)"),
        ("0 30 0 14 10 ?", SAO_PAULO, "2017-10-14", "next", "10-15 01:00 (10-14 00:30)"),
        ("0 30 0 14,15 10 ?", SAO_PAULO, "2017-10-14", "next", "10-15 01:00 (10-14 00:30)"),
        ("30 0 14,15 10 *", SAO_PAULO, "2017-10-14", "next", "10-15 01:00"),
        ("30 0 15 10 *", SAO_PAULO, "2017-10-15", "next", "10-16 01:00 (10-15 01:00)"),
        ("0 30 0 * * ?", SAO_PAULO, "2017-10-14", "skip", "10-13 00:30, 10-16 00:30"),
        # a day that does not exist
        ("0 0 9 29 12 ?", APIA, "2011-12-29", "next", "12-31 00:00 (12-29 09:00)"),
        ("0 0 9 31 12 ?", APIA, "2011-12-31", "previous", "12-31 00:00 (12-31 09:00)"),
        (
            NINE,
            APIA,
            "2011-12-29",
            "next",
            "12-28 09:00, 12-31 00:00 (12-29 09:00), 12-31 09:00, 01-01 09:00",
        ),
    ],
)
def test_a_moved_instant_keeps_its_time_of_day(
    conf: str, zone: str, day_off: str, text: str, expected: str
) -> None:
    schedule = ruled(conf, JobRules(rule(off(day_off), f"workdays {text}")), zone)
    noon_ms = ms(f"{day_off} 12:00", zone)
    assert starts(schedule, noon_ms - 2 * DAY_MS, noon_ms + 2 * DAY_MS) == expected


@truth_table(
    "conf, text, fold",
    [
        ("0 30 2 24 10 ?", "next", 0),  # moved: the first of two
        ("0 30 2 25 10 ?", "next", 1),  # its own: the second, by its six fields
        ("30 2 25 10 *", "next", 0),
    ],
)
def test_of_a_time_that_is_twice_a_moved_instant_takes_the_first(conf: str, text: str, fold: int) -> None:
    schedule = ruled(conf, JobRules(rule(off("2026-10-24"), f"workdays {text}")), BERLIN)
    due_ms = next_after_ms(schedule, ms("2026-10-24 00:00", BERLIN))
    assert due_ms == ms("2026-10-25 02:30", BERLIN, fold)


def test_merged_instants_name_those_that_run_for_them() -> None:
    of_day = starts_on("0 0 9,10 * * ?", SHANGHAI, rule(CHINA, "workdays next"), date(2026, 10, 12))
    assert of_day.merges == [
        Merge(at("10-11 09:00"), at("10-12 09:00")),
        Merge(at("10-11 10:00"), at("10-12 10:00")),
    ]


@truth_table(
    "not_before, not_after, expected",
    [
        ("10-08 09:00", "", "10-08 09:00 (10-01 09:00), 11-02 09:00 (11-01 09:00)"),
        ("10-08 09:01", "", "11-02 09:00 (11-01 09:00)"),
        ("", "10-08 09:00", "09-01 09:00, 10-08 09:00 (10-01 09:00), end"),
        ("", "10-08 08:59", "09-01 09:00, end"),
        ("10-02", "10-07 23:59", "end"),
    ],
)
def test_the_window_is_that_of_moved_instants(not_before: str, not_after: str, expected: str) -> None:
    window = [at(text) if text else 0 for text in (not_before, not_after)]
    rules = JobRules(rule(CHINA, "workdays next"))
    schedule = ruled("0 0 9 1 * ?", rules, SHANGHAI, window=window)
    assert starts(schedule, at("09-01"), at("11-30")) == expected


@truth_table(
    "text, expected",
    [
        ("workdays", "09-29 16:15, 09-30 08:15, 10-08 08:15, 10-09 00:15"),
        ("holidays", "10-01 00:15, 10-01 16:15, 10-02 08:15, 10-03 00:15, "),
    ],
)
def test_a_fixed_rate_keeps_its_phase_through_holidays(text: str, expected: str) -> None:
    schedule = ruled(str(16 * 3_600), JobRules(rule(CHINA, text), (), at("09-01 00:15")), SHANGHAI, kind=RATE)
    assert starts(schedule, at("09-29 12:00"), at("10-09 00:15")).startswith(expected)


@truth_table(
    "kind, conf, day_rule",
    [
        (AT, "2031-01-01 00:00:00", None),
        (CRON, "0 0 9 1 1 ? 2031", None),
        (CRON, "0 0 9 29 2 ?", None),
        (CRON, "0 0 9 29 2 ?", "workdays"),
        (CRON, "0 0 9 29 2 ?", "workdays next"),
        (CRON, "0 0 9 29 2 ?", "workdays previous"),
    ],
)
def test_a_schedule_of_a_far_year_does_not_end_by_its_rules(
    kind: ScheduleType, conf: str, day_rule: str | None
) -> None:
    """Two years are how long all instants may be excluded, not how far the first one may be."""
    now_ms = ms("2024-03-01 00:00", "UTC")
    rules = JobRules(
        None if day_rule is None else rule(Calendar("all", frozenset()), day_rule),
        (Blackout(1, now_ms - DAY_MS, now_ms + DAY_MS),),
    )
    plain = Schedule(kind, conf, "UTC")
    assert next_after_ms(ruled(conf, rules, "UTC", kind=kind), now_ms) == next_after_ms(plain, now_ms)
