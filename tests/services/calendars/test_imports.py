"""Days out of CSV and iCalendar files: what is read, and what is refused with its line."""

import contextlib
import time
from datetime import date

import pytest

from app.domain.calendars.calendar import DayKind
from app.errors import InvalidInput
from app.services.calendars.imports import BYTES_MAX, days_of_csv, days_of_ics
from tests.support.truth_table import truth_table

OFF, WORK = DayKind.HOLIDAY, DayKind.WORKDAY
NATIONAL = date(2026, 10, 1)


def event(*lines: str) -> str:
    """Return an iCalendar file of one event."""
    content = ("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR", "")
    return "\r\n".join(content)


def days_between(first: int, last: int) -> list[date]:
    return [date(2026, 10, day) for day in range(first, last + 1)]


@truth_table(
    "text, kind, name",
    [
        ("2026-10-01,holiday,国庆节", OFF, "国庆节"),
        ("2026-10-01,holiday", OFF, None),
        ("2026-10-01,holiday,", OFF, None),
        ("2026/10/1,休", OFF, None),
        ("2026-10-1, Holiday ,x,,", OFF, "x"),
        ("20261001,补班,国庆节", WORK, "国庆节"),
        ("20261001,班", WORK, None),
        ("20261001,WORK", WORK, None),
        ("date,kind,name\n2026-10-01,workday,x", WORK, "x"),
        ("\ufeff日期;类型;名称\r\n2026-10-01;休;国庆节\r\n", OFF, "国庆节"),
        ('# by hand\n\n2026-10-01\tworkday\t"Oct 1, moved"\n', WORK, "Oct 1, moved"),
        ('2026-10-01,workday,"Oct 1, moved"', WORK, "Oct 1, moved"),
        # the first name stays
        ("2026-10-01,休\n2026-10-01,休,国庆节\n2026-10-01,休,中秋节", OFF, "国庆节"),
    ],
)
def test_a_line_of_csv_is_a_day(text: str, kind: DayKind, name: str | None) -> None:
    days = days_of_csv(text)
    assert days.days == {NATIONAL: kind}
    assert days.names.get(NATIONAL) == name


def test_days_are_in_order_and_valid_until_the_end_of_the_last_year() -> None:
    days = days_of_csv("2027-01-01,休\n2026-10-01,休\n")
    assert list(days.days) == [NATIONAL, date(2027, 1, 1)]
    assert days.valid_until == date(2027, 12, 31)


@truth_table(
    "text, problem",
    [
        ("2026-10-01,休\n1.10.2026,休", 'Line 2: "1.10.2026" is not a date; give one such as 2026-10-01'),
        ("2026-02-29,休", 'Line 1: "2026-02-29" is not a date'),
        ("2026-10/01,休", "is not a date"),
        ("# x\n\n2026-10-01,maybe", 'Line 3: "maybe" is not a kind of day; give workday or holiday'),
        ("2026-10-01", "Line 1: give date, kind and perhaps a name, such as 2026-10-01,holiday,国庆节"),
        ("2026-10-01,休,Oct 1, moved", "Line 1: give date, kind"),
        (
            "2026-10-01,休\n2026-10-02,休\n2026-10-01,班",
            "Line 3: 2026-10-01 is both a workday and a holiday, see line 1",
        ),
        ("0201-10-01,休", "Line 1: 0201-10-01 is not in the years 2000 to 2099"),
        ("", "The file has no days"),
        ("date,kind", "The file has no days"),
        ("2026-10-01,休," + "x" * 200_000, "Line 1: not readable as CSV"),
        ("x" * (BYTES_MAX + 1), "larger than 1 MB"),
        ("休" * (BYTES_MAX // 2), "larger than 1 MB"),
        (
            "\n".join(f"{n // 336 + 2000}-{n // 28 % 12 + 1}-{n % 28 + 1},休" for n in range(4_001)),
            "Line 4001: there are more",
        ),
    ],
)
def test_a_bad_line_of_csv_is_named(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        days_of_csv(text)
    assert refused.value.field == "file"
    assert problem in refused.value.message


@truth_table(
    "lines, days",
    [
        (["DTSTART;VALUE=DATE:20261001"], days_between(1, 1)),
        # the end is the day after
        (["DTSTART;VALUE=DATE:20261001", "DTEND;VALUE=DATE:20261008"], days_between(1, 7)),
        (["DTSTART:20261001", "DTEND:20261001"], days_between(1, 1)),
        (["DTSTART:20261001", "DURATION:P7D"], days_between(1, 7)),
        (["DTSTART:20261001", "DURATION:P1W"], days_between(1, 7)),
        # folded lines, zones with colons, times
        (["DTSTART;VALUE=DA", " TE:2026", "\t1001"], days_between(1, 1)),
        (
            ['DTSTART;TZID="GMT+08:00":20261001T000000', "DTEND;TZID=Asia/Shanghai:20261008T000000"],
            days_between(1, 7),
        ),
        (["DTSTART:20261001T090000", "DTEND:20261002T180000"], days_between(1, 2)),
        (["dtstart:20261001T090000"], days_between(1, 1)),
        # an alarm within the event
        (["DTSTART:20261001", "BEGIN:VALARM", "TRIGGER:-PT30M", "RRULE:X", "END:VALARM"], days_between(1, 1)),
    ],
)
def test_an_event_lasts_until_the_moment_before_its_end(lines: list[str], days: list[date]) -> None:
    assert list(days_of_ics(event(*lines)).days) == days


@truth_table(
    "lines, kind, name",
    [
        (["SUMMARY:国庆节 休"], OFF, "国庆节"),
        (["SUMMARY:国庆节 班"], WORK, "国庆节"),
        (["SUMMARY:国庆节（休）"], OFF, "国庆节"),
        (["SUMMARY:国庆节（班）"], WORK, "国庆节"),
        (["SUMMARY:国庆节调休上班"], WORK, "国庆节"),
        (["SUMMARY:国庆节 调休"], OFF, "国庆节"),
        (["SUMMARY:国庆节放假"], OFF, "国庆节"),
        (["SUMMARY:春节 补班 第1天/共2天"], WORK, "春节"),
        (["SUMMARY:春节 假期 第1天/共8天"], OFF, "春节"),
        (["SUMMARY:國慶日 補班"], WORK, "國慶日"),
        (["SUMMARY:班"], WORK, "班"),
        (["SUMMARY:国庆节", "CATEGORIES:上班"], WORK, "国庆节"),
        (["SUMMARY:Make-up workday"], WORK, "Make-up workday"),
        (["SUMMARY:Special Working Day"], WORK, "Special Working Day"),
        (["SUMMARY:Children's Day (make-up holiday)"], OFF, "Children's Day (make-up holiday)"),
        (["SUMMARY:International Workers' Day"], OFF, "International Workers' Day"),
        (
            ["SUMMARY;LANGUAGE=de:Tag der\\nDeutschen Einheit\\, 3. Oktober"],
            OFF,
            "Tag der Deutschen Einheit, 3. Oktober",
        ),
        (["SUMMARY:国庆节", "X-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY"], WORK, "国庆节"),
        (["SUMMARY:国庆节", "X-APPLE-SPECIAL-DAY:WORK-HOLIDAY"], OFF, "国庆节"),
        ([], OFF, None),
    ],
)
def test_an_event_is_a_holiday_unless_it_says_work(lines: list[str], kind: DayKind, name: str | None) -> None:
    days = days_of_ics(event("DTSTART:20261001", *lines))
    assert days.days == {NATIONAL: kind}
    assert days.names.get(NATIONAL) == name


def test_with_marks_of_special_days_other_events_do_not_count() -> None:
    others = "BEGIN:VEVENT\nDTSTART:20260214\nRRULE:FREQ=YEARLY\nSUMMARY:情人节\nEND:VEVENT\nEND:VCALENDAR"
    marked = event("DTSTART:20261001", "X-APPLE-SPECIAL-DAY:WORK-HOLIDAY").replace(
        "END:VCALENDAR\r\n", others
    )
    assert list(days_of_ics("\ufeff" + marked).days) == [NATIONAL]


def test_a_cancelled_event_does_not_count() -> None:
    cancelled = "BEGIN:VEVENT\nDTSTART:20261002\nSTATUS:CANCELLED\nEND:VEVENT\nEND:VCALENDAR"
    text = event("DTSTART:20261001").replace("END:VCALENDAR\r\n", cancelled)
    assert list(days_of_ics(text).days) == [NATIONAL]


@truth_table(
    "text, problem",
    [
        (
            event("DTSTART:20261001", "SUMMARY:x", "RRULE:FREQ=YEARLY"),
            'Line 6: the event "x" recurs (RRULE); give each',
        ),
        (event("DTSTART:20261001", "RDATE:20261002"), "Line 5: the event"),
        (
            event("DTSTART:20260930T160000Z"),
            "is a time in UTC, whose day depends on the zone; give a date such as",
        ),
        (event("DTSTART:2026-10-01"), 'Line 4: "2026-10-01" is not a date; give one such as 20261001'),
        (event("DTSTART:20261301"), 'Line 4: "20261301" is not a date'),
        (event("DTSTART:20261001", "DTEND:20260930"), "Line 5: the event ends before it starts"),
        (
            event("DTSTART:20261001", "DURATION:PT8H"),
            'Line 5: "PT8H" is not a duration of days; give one such as P7D',
        ),
        (event("DTSTART:20261001", "DURATION:P0D"), "is not a duration"),
        (event("SUMMARY:x"), "Line 3: the event has no DTSTART"),
        (event("DTSTART:20261001", "x"), "Line 5: not a property"),
        (event("DTSTART:20000101", "DTEND:20990101"), "Line 3: there are more than 4000 days"),
        (event("DTSTART:20261001", "DURATION:P9999W"), "Line 3: there are more than 4000 days"),
        (event("DTSTART:99991231", "DURATION:P2D"), "Line 4: 9999-12-31 is not in the years"),
        (
            event("DTSTART:20261001", "END:VEVENT", "BEGIN:VEVENT", "DTSTART:20261001", "SUMMARY:班"),
            "is both a workday",
        ),
        ("<html>\n<body>", "Line 1: not an iCalendar file; it must start with BEGIN:VCALENDAR"),
        (event("DTSTART:20261001") + "BEGIN:VEVENT", "Line 7: not an iCalendar file"),
        (
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR",
            "Line 3: END:VCALENDAR does not belong to the last BEGIN",
        ),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261001", "Line 3: END:VEVENT of line 2 is missing"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR", "The file has no days"),
        ("", "The file has no days"),
        ("x" * (BYTES_MAX + 1), "larger than 1 MB"),
    ],
)
def test_a_bad_line_of_icalendar_is_named(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        days_of_ics(text)
    assert refused.value.field == "file"
    assert problem in refused.value.message


@truth_table(
    "line",
    [
        "DTSTART" + ";a=,,," * 100_000,
        "X" + ' ;=",' * 150_000,
        "X" + ';a="b' * 150_000,
        "\r\n ".join("x" * 200_000),
        "BEGIN:X\r\n" * 100_000,
        "SUMMARY:" + "make-up " * 100_000 + "off",
        "SUMMARY:" + "-" * 900_000 + "x",
        "SUMMARY:" + "第1天" * 100_000,
    ],
)
def test_a_hostile_file_is_read_in_linear_time(line: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(InvalidInput):
        days_of_ics(event("DTSTART:20261001", line))
    assert time.monotonic() - started < 5
