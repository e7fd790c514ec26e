"""Instants of a past range, compared with a listing of all of them."""

from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import HOUR_MS, Millis
from app.domain.backfills.instants import Standing
from app.domain.backfills.schedule_times import list_times
from app.domain.calendars.effective import JobRules
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule
from tests.domain.calendars.brute import Listing
from tests.domain.calendars.test_property import (
    DAYS,
    HOURS,
    MINUTES,
    RATES,
    SECONDS,
    Case,
    Scale,
    cases,
)
from tests.support.domain_calendars import CHINA, rule
from tests.support.domain_schedules import BERLIN, ms
from tests.support.truth_table import truth_table

ALL = 100_000
#: what a listing says of the instants of the expression in a range: logical time -> standing, None: it runs
Listed = dict[Millis, Standing | None]


class Range(NamedTuple):
    """A range of a case, and when it is listed."""

    case: Case
    from_ms: Millis
    to_ms: Millis
    now_ms: Millis
    most: int = ALL


@st.composite
def ranges(draw: Any, scale: Scale) -> Range:
    case = draw(cases(scale))
    points = [case.core.from_ms, *case.points, case.core.until_ms]
    from_ms, to_ms = sorted(draw(st.lists(st.sampled_from(points), min_size=2, max_size=2)))
    now_ms = max(to_ms, draw(st.sampled_from([0, *points])))
    return Range(case, from_ms, to_ms, now_ms, draw(st.sampled_from([ALL, ALL, 1, 7])))


def listed(given_range: Range) -> Listed:
    """List the instants of a range, one rule after the other."""
    case, first_ms, last_ms = given_range.case, *window(given_range.case.schedule)
    listing, without = case.listing(), case._replace(blackouts=()).listing()
    due_by_raw = {raw_ms: due_ms for due_ms, raw_ms in listing.effective.items()}
    covered = {without.left[due_ms] for due_ms in listing.covered}
    found: Listed = {}
    for raw_ms in listing.raw():
        if not given_range.from_ms <= raw_ms < given_range.to_ms:
            continue
        if raw_ms in due_by_raw:
            if due_by_raw[raw_ms] <= given_range.now_ms:
                found[raw_ms] = None
        elif raw_ms in covered:
            found[raw_ms] = Standing.BLACKOUT
        elif raw_ms in listing.off and first_ms <= moved_to(listing, raw_ms) <= last_ms:
            found[raw_ms] = Standing.CALENDAR
    return found


def window(schedule: Schedule) -> tuple[Millis, Millis]:
    return schedule.not_before_ms, schedule.not_after_ms or 2**62


def moved_to(listing: Listing, raw_ms: Millis) -> Millis:
    local = listing._local(raw_ms)
    target = listing._target(local.date())
    return raw_ms if target is None else listing._instant(datetime.combine(target, local.time()))


def check(given_range: Range) -> None:
    case, expected = given_range.case, listed(given_range)
    schedule = replace(case.schedule, rules=JobRules(case.rule, tuple(case.blackouts), case.anchor_ms))
    found = list_times(
        schedule, given_range.from_ms, given_range.to_ms, now_ms=given_range.now_ms, most=given_range.most
    )
    first = dict([*expected.items()][: given_range.most])
    assert found.logical_times == [at_ms for at_ms, standing in first.items() if standing is None]
    assert {at_ms: each.standing for at_ms, each in found.exclusions.items()} == {
        at_ms: standing for at_ms, standing in first.items() if standing is not None
    }
    assert found.is_cut == (len(expected) > given_range.most)


@settings(max_examples=60)
@given(ranges(DAYS))
def test_a_cron_of_days(given_range: Range) -> None:
    check(given_range)


@settings(max_examples=30)
@given(ranges(HOURS))
def test_a_cron_of_hours(given_range: Range) -> None:
    check(given_range)


@settings(max_examples=10)
@given(ranges(MINUTES))
def test_a_cron_of_minutes(given_range: Range) -> None:
    check(given_range)


@settings(max_examples=10)
@given(ranges(SECONDS))
def test_a_cron_of_seconds(given_range: Range) -> None:
    check(given_range)


@settings(max_examples=30)
@given(ranges(RATES))
def test_a_fixed_rate(given_range: Range) -> None:
    check(given_range)


def cron(conf: str, **window: Any) -> Schedule:
    return Schedule(ScheduleType.CRON, conf, BERLIN, **window)


def at(text: str) -> Millis:
    return ms(f"{text} 00:00", BERLIN)


YEARS = at("2016-03-01"), at("2026-03-01")
MAY, SECOND = at("2026-05-01"), 1_000
EACH_SECOND, HOURLY = "* * * * * ?", "0 0 * * * ?"


@truth_table(
    "schedule, from_ms, to_ms, expected",
    [
        (cron("0 0 0 1 * ?"), *YEARS, (120, False)),
        (cron("0 0 0 29 2 ?"), *YEARS, (2, False)),
        (cron("0 0 0 * * ?"), *YEARS, (3_652, False)),
        (Schedule(ScheduleType.AT, "2020-01-02 03:04:05", BERLIN), *YEARS, (1, False)),
        (Schedule(ScheduleType.FIX_DELAY, "60", BERLIN), *YEARS, (0, False)),
        (Schedule(ScheduleType.NONE, "", BERLIN), *YEARS, (0, False)),
        # A fixed rate without a known phase counts from the start.
        (Schedule(ScheduleType.FIX_RATE, "86400", BERLIN), *YEARS, (3_652, False)),
        (cron("0 0 0 1 * ?"), 0, at("2026-01-01"), (671, False)),
        # What lies outside the window of a schedule is not looked at.
        (cron(EACH_SECOND, not_before_ms=MAY - 9 * SECOND), 0, MAY, (9, False)),
        (cron(EACH_SECOND, not_after_ms=MAY + 9 * SECOND), MAY, at("2096-05-01"), (10, False)),
        (cron(EACH_SECOND), *YEARS, (10_000, True)),
        (cron(EACH_SECOND), MAY, MAY + 10_000 * SECOND, (10_000, False)),
        # The start is among them, the end is not.
        (cron(HOURLY), MAY, MAY + 2 * HOUR_MS, (2, False)),
        (cron(HOURLY), MAY + 1, MAY + 2 * HOUR_MS + 1, (2, False)),
        (cron(HOURLY), MAY, MAY, (0, False)),
    ],
)
def test_ranges(schedule: Schedule, from_ms: Millis, to_ms: Millis, expected: tuple[int, bool]) -> None:
    found = list_times(schedule, from_ms, to_ms, now_ms=to_ms, most=10_000)
    assert (len(found.logical_times), found.is_cut) == expected


@truth_table("conf", ["0 30 2 * * ?", "30 2 * * *", "0 0/20 * * * ?", "*/20 * * * *", "0 0/20 2 * * ?"])
def test_a_range_may_begin_in_the_hour_that_is_twice(conf: str) -> None:
    from_ms, to_ms = ms("2024-10-26 12:00", BERLIN), ms("2024-10-27 12:00", BERLIN)
    whole = list_times(cron(conf), from_ms, to_ms, now_ms=to_ms, most=ALL).logical_times
    for at_ms in range(from_ms, to_ms, HOUR_MS // 12):
        parts = [
            *list_times(cron(conf), from_ms, at_ms, now_ms=to_ms, most=ALL).logical_times,
            *list_times(cron(conf), at_ms, to_ms, now_ms=to_ms, most=ALL).logical_times,
        ]
        assert parts == whole


def test_an_instant_that_moves_to_the_future_is_not_run_yet() -> None:
    rules = JobRules(rule(CHINA, "workdays next"))
    schedule = Schedule(ScheduleType.CRON, "0 0 9 30,3 * ?", "UTC", rules=rules)
    first_ms, moved_ms, now_ms = (ms(f"2026-{day} 09:00", "UTC") for day in ("09-30", "10-03", "10-08"))
    for at_ms, times in ((now_ms - 1, [first_ms]), (now_ms, [first_ms, moved_ms])):
        found = list_times(schedule, first_ms, now_ms - 1, now_ms=at_ms, most=len(times))
        assert found == (times, {}, False)
