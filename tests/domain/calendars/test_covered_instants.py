"""Effective instants of blackouts: what they cover, and what runs at their end."""

from app.clock import Millis
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.calendars.effective import JobRules
from app.domain.completeness.expected_instants import (
    Interval,
    count_excluded,
    count_expected,
    expected_instants,
)
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import RESTING, next_after_ms
from tests.support.domain_calendars import CHINA, rule, ruled, starts
from tests.support.domain_schedules import SHANGHAI, ms
from tests.support.truth_table import truth_table

CRON, RATE, DELAY, AT = ScheduleType.CRON, ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY, ScheduleType.AT
HOURLY, TEN = "0 30 * * * ?", "2026-06-01 10:30:00"
NIGHT = Blackout(2, 0, None, "0 0 22 * * ?", 8 * 3_600)


def at(text: str) -> Millis:
    """Return an instant of the day, given as "10:00"."""
    return ms(f"2026-06-01 {text}", "UTC")


def blackouts_of(text: str) -> tuple[Blackout, ...]:
    """Return blackouts of the day, given as "10:00-12:00", "22:00-" or "night", with "!": run once."""
    found = list[Blackout]()
    for part in text.split():
        from_text, _, until_text = part.rstrip("!").partition("-")
        blackout = NIGHT
        if from_text != "night":
            blackout = Blackout(1, at(from_text), at(until_text) if until_text else None)
        afterwards = Afterwards.RUN_ONCE if part.endswith("!") else Afterwards.SKIP
        found.append(blackout._replace(afterwards=afterwards))
    return tuple(found)


@truth_table(
    "kind, conf, blackouts, expected",
    [
        # half-open: an instant at the beginning is covered, one at the end is not
        (CRON, "0 0 10-12 * * ?", "10:00-12:00", "12:00"),
        (CRON, "0 0 10-12 * * ?", "10:01-11:59", "10:00, 12:00"),
        # touching, overlapping, and within
        (CRON, HOURLY, "00:00-22:00 22:00-23:00", "23:30"),
        (CRON, HOURLY, "02:00-23:00 01:00-23:30", "00:30, 23:30"),
        (CRON, HOURLY, "02:00-03:00 01:00-23:30", "00:30, 23:30"),
        # run once: at the end, for the latest; a moment later, if the schedule runs at the end itself
        (CRON, HOURLY, "02:00-23:00!", "00:30, 01:30, 23:00 once (22:30), 23:30"),
        (CRON, HOURLY, "01:00-23:30!", "00:30, 23:30, 23:30:00.001 once (22:30)"),
        (CRON, HOURLY, "00:00-22:00! 21:00-23:00", "23:00 once (22:30), 23:30"),
        (CRON, HOURLY, "00:00-22:00 21:00-23:00!", "23:00 once (22:30), 23:30"),
        (CRON, HOURLY, "00:00-22:00! 22:30-23:00", "22:00 once (21:30), 23:30"),
        (CRON, HOURLY, "00:00-22:00! 22:30-23:00!", "22:00 once (21:30), 23:00 once (22:30), 23:30"),
        # nothing was covered
        (CRON, HOURLY, "00:31-01:30! 02:00-", "00:30, 01:30, rests"),
        # without an end
        (CRON, HOURLY, "00:00-", "rests"),
        (CRON, HOURLY, "01:00-!", "00:30, rests"),
        (CRON, HOURLY, "00:00-22:00! 22:10-", "22:00 once (21:30), rests"),
        (CRON, HOURLY, "00:00-22:00! 22:00-", "rests"),
        (CRON, "0 0 9 1 5 ? 2026", "00:00-", "end"),
        # again and again; what lies within never runs
        (CRON, "0 0 21,23 * * ?", "night", "21:00"),
        (CRON, "0 0 21,23 * * ?", "night!", "06:00 once (05-31 23:00), 21:00"),
        (CRON, "0 0 21,23 * * ?", "night! 05:00-07:00", "07:00 once (05-31 23:00), 21:00"),
        (CRON, "0 0 23 * * ?", "night", "end"),
        # a time
        (AT, TEN, "10:00-12:00", "end"),
        (AT, TEN, "10:00-12:00!", "12:00 once (10:30), end"),
        (AT, TEN, "11:00-12:00!", "10:30, end"),
        (AT, TEN, "10:30-", "rests"),
        # a fixed rate keeps its phase
        (RATE, "21600", "05:00-07:00", "00:15, 12:15, 18:15"),
        (RATE, "21600", "05:00-07:00!", "00:15, 07:00 once (06:15), 12:15, 18:15"),
    ],
)
def test_a_blackout_covers_instants(kind: ScheduleType, conf: str, blackouts: str, expected: str) -> None:
    rules = JobRules(None, blackouts_of(blackouts), ms("2026-05-01 00:15", "UTC"))
    schedule = ruled(conf, rules, "UTC", kind=kind)
    assert starts(schedule, at("00:00") - 1, at("23:59")).replace("06-01 ", "") == expected


@truth_table(
    "not_before, not_after, expected",
    [
        ("10:00", "", "12:00 once (11:30), 12:30"),
        ("11:31", "", "12:30"),
        ("", "12:00", "09:30, 12:00 once (11:30), end"),
        ("", "11:59", "09:30, end"),
    ],
)
def test_the_window_comes_before_the_blackout(not_before: str, not_after: str, expected: str) -> None:
    window = [at(text) if text else 0 for text in (not_before, not_after)]
    rules = JobRules(None, blackouts_of("10:00-12:00!"))
    schedule = ruled(HOURLY, rules, "UTC", window=window)
    assert starts(schedule, at("09:00"), at("12:59")).replace("06-01 ", "") == expected


@truth_table(
    "afterwards, expected",
    [(Afterwards.SKIP, ""), (Afterwards.RUN_ONCE, "10-08 12:00 once (10-01 09:00)")],
)
def test_a_blackout_covers_instants_where_the_calendar_has_moved_them(
    afterwards: Afterwards, expected: str
) -> None:
    """From the holidays to the 8th, which is covered; that the 1st is covered, too, does not matter."""
    first, eighth, last = (ms(f"2026-10-{day} 00:00", SHANGHAI) for day in ("01", "08", "31"))
    blackouts = (
        Blackout(each, from_ms, from_ms + 12 * 3_600_000, afterwards=afterwards)
        for each, from_ms in enumerate((first, eighth))
    )
    rules = JobRules(rule(CHINA, "workdays next"), tuple(blackouts))
    assert starts(ruled("0 0 9 1 * ?", rules, SHANGHAI), first, last) == expected


@truth_table(
    "blackouts, due",
    [
        ("", "11:00"),
        ("11:01-13:00", "11:00"),
        ("10:30-11:00", "11:00"),
        ("11:00-13:00", "13:00"),
        ("10:30-13:00!", "13:00"),
        ("10:30-13:00 13:00-14:00", "14:00"),
        ("10:30-", "rests"),
    ],
)
def test_a_delay_that_ends_in_a_blackout_ends_with_it(blackouts: str, due: str) -> None:
    schedule = ruled("3600", JobRules(None, blackouts_of(blackouts)), "UTC", kind=DELAY)
    assert next_after_ms(schedule, at("10:00")) == (RESTING if due == "rests" else at(due))


@truth_table(
    "blackouts, first, last, counts",
    [
        # what is covered belongs to its own time, what runs at the end to the end
        ("10:00-12:30!", "10:00", "12:29:59.999", (0, 1)),
        ("10:00-12:30!", "10:00", "12:30:00.000", (1, 1)),
        ("10:00-12:30!", "10:00", "12:30:00.001", (2, 1)),
        ("10:00-12:30!", "12:30:00.000", "13:00", (2, 0)),
        ("10:00-12:30!", "12:30:00.001", "13:00", (1, 0)),
        ("10:00-12:30!", "12:30:00.002", "13:00", (0, 0)),
        ("10:00-12:30", "10:00", "13:00", (1, 2)),
        ("10:00-", "09:00", "13:00", (1, 3)),
    ],
)
def test_instants_are_counted_where_they_are(
    blackouts: str, first: str, last: str, counts: tuple[int, int]
) -> None:
    span = Span(1, 1, True, 0, None, ruled(HOURLY, JobRules(None, blackouts_of(blackouts)), "UTC"))
    interval = Interval(at(first), at(last) + 1)
    assert (count_expected([span], interval), count_excluded([span], interval).total()) == counts
    assert len([*expected_instants([span], interval)]) == counts[0]


def test_a_schedule_of_which_blackouts_cover_all_instants_ends() -> None:
    blackout = Blackout(1, 0, None, "0 0/10 * * * ?", 60)
    schedule = ruled("30 0/10 * * * ?", JobRules(None, (blackout,)), "UTC")
    assert next_after_ms(schedule, at("10:00")) is None
