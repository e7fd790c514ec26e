"""Expected instants: equal to those of the scan's rule one by one, and counted as they are listed."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.clock import SECOND_MS, Millis
from app.domain.completeness.expected_instants import Interval, count_expected, expected_instants
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms

HOUR_MS = 3_600_000


def at(text: str, zone: str = "UTC") -> Millis:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def span_of(
    conf: str,
    from_ms: Millis,
    until_ms: Millis | None = None,
    *,
    kind: ScheduleType = ScheduleType.CRON,
    zone: str = "UTC",
    is_on: bool = True,
    anchor_ms: Millis = 0,
    bounds: tuple[Millis, Millis] = (0, 0),
) -> Span:
    schedule = Schedule(kind, conf, zone, *bounds)
    return Span(1, 1, is_on, from_ms, until_ms, schedule, anchor_ms)


def one_by_one(span: Span, interval: Interval) -> Iterator[Millis]:
    """The instants of a span by the rule of the scan alone."""
    instant: Millis | None = max(span.from_ms, interval.from_ms - 1)
    last_ms = min(interval.until_ms - 1, span.until_ms or interval.until_ms)
    while (instant := next_after_ms(span.schedule, instant)) is not None and instant <= last_ms:
        yield instant


ZONES = ["UTC", "Asia/Shanghai", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"]
CRONS = [
    "* * * * * ?",
    "0/7 * * * * ?",
    "30 0/5 * * * ?",
    "0 0 0/2 * * ?",
    "15 30 2 * * ?",
    "0 15,45 2,3 ? * SUN",
    "0 0 2 L * ?",
    "0 30 1 1W * ?",
    "10-20 59 23 31 * ?",
    "0 0 0 1 1 ? 2026",
    "*/5 * * * *",
    "30 2 * * *",
    "0,30 2,3 * * *",
    "15 */2 * * *",
    "0 0 1 * 1",
]
#: around changes of clocks of these zones, and a new year
MOMENTS = [
    at("2026-03-29T00:00"),
    at("2026-10-25T00:00"),
    at("2026-04-04T15:00"),
    at("2026-10-03T15:00"),
    at("2026-12-31T20:00"),
    at("2018-11-04T02:00"),
]


@given(
    conf=st.sampled_from(CRONS),
    zone=st.sampled_from(ZONES),
    moment=st.sampled_from(MOMENTS),
    shift_ms=st.integers(-3 * HOUR_MS, 3 * HOUR_MS),
    length_ms=st.integers(0, 2 * HOUR_MS),
    start_ms=st.integers(-2 * HOUR_MS, 3 * HOUR_MS),
    end_ms=st.one_of(st.none(), st.integers(0, 5 * HOUR_MS)),
    is_bounded=st.booleans(),
)
@example("0 30 * * * ?", "UTC", MOMENTS[0], 1_799_999, HOUR_MS, -HOUR_MS, None, False)
def test_a_cron_is_expected_as_the_scan_fires_it(
    conf: str,
    zone: str,
    moment: Millis,
    shift_ms: Millis,
    length_ms: Millis,
    start_ms: Millis,
    end_ms: Millis | None,
    is_bounded: bool,
) -> None:
    interval = Interval(moment + shift_ms, moment + shift_ms + length_ms)
    begin_ms = moment + start_ms
    span = span_of(conf, begin_ms, None if end_ms is None else begin_ms + end_ms, zone=zone)
    if is_bounded:
        bounds = replace(span.schedule, not_before_ms=begin_ms + 1_234_567, not_after_ms=begin_ms + 9_876_000)
        span = replace(span, schedule=bounds)
    instants = list(expected_instants([span], interval))
    assert instants == list(one_by_one(span, interval))
    assert count_expected([span], interval) == len(instants)


@pytest.mark.parametrize(
    ("conf", "zone", "day", "count"),
    [
        ("* * * * * ?", "Asia/Shanghai", "2026-06-01", 86_400),
        ("* * * * * ?", "Europe/Berlin", "2026-03-29", 23 * 3_600),
        ("* * * * * ?", "Europe/Berlin", "2026-10-25", 24 * 3_600),
        ("* * * * *", "Europe/Berlin", "2026-10-25", 25 * 60),
        ("0 30 2 * * ?", "Europe/Berlin", "2026-03-29", 0),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29", 1),
        ("0 0 12 L * ?", "UTC", "2026-02-28", 1),
    ],
)
def test_a_day_has_so_many_instants(conf: str, zone: str, day: str, count: int) -> None:
    begin_ms = at(f"{day}T00:00", zone)
    end_ms = at(f"{date.fromisoformat(day) + timedelta(days=1)}T00:00", zone)
    interval = Interval(begin_ms, end_ms)
    assert count_expected([span_of(conf, 0, zone=zone)], interval) == count


@given(
    first_ms=st.integers(-HOUR_MS, HOUR_MS),
    length_ms=st.integers(0, HOUR_MS),
    cut_ms=st.integers(0, HOUR_MS),
    period=st.integers(1, 4_000),
    anchor_ms=st.integers(-HOUR_MS, HOUR_MS),
)
def test_a_fixed_rate_follows_from_its_first_instant(
    first_ms: Millis, length_ms: Millis, cut_ms: Millis, period: int, anchor_ms: Millis
) -> None:
    begin_ms = MOMENTS[0]
    span = span_of(str(period), begin_ms, kind=ScheduleType.FIX_RATE, anchor_ms=begin_ms + anchor_ms)
    interval = Interval(begin_ms + first_ms, begin_ms + first_ms + length_ms)
    instants = list(expected_instants([span], interval))
    all_instants = range(begin_ms + anchor_ms, interval.until_ms, period * SECOND_MS)
    assert instants == [i for i in all_instants if i > span.from_ms and i >= interval.from_ms]
    middle = min(interval.from_ms + cut_ms, interval.until_ms)
    parts = [Interval(interval.from_ms, middle), Interval(middle, interval.until_ms)]
    assert sum(count_expected([span], part) for part in parts) == len(instants)


DAY = Interval(at("2026-06-01T00:00"), at("2026-06-02T00:00"))
NOON = at("2026-06-01T12:00")


@pytest.mark.parametrize(
    ("spans", "count"),
    [
        ([], 0),
        ([span_of("0 0 * * * ?", 0, is_on=False)], 0),
        ([span_of("0 0 * * * ?", NOON)], 11),
        ([span_of("0 0 * * * ?", 0, NOON)], 13),
        ([span_of("0 0 * * * ?", 0, NOON), span_of("0 0 * * * ?", NOON, is_on=False)], 13),
        ([span_of("0 0 * * * ?", 0, NOON), span_of("0 30 * * * ?", NOON)], 13 + 12),
        # the scan had read the last instant ahead; the hand-over took it back
        (
            [
                span_of("0 0 * * * ?", 0, NOON),
                span_of("0 0 * * * ?", NOON, NOON, is_on=False),
                span_of("0 0 * * * ?", NOON - 2_000),
            ],
            24,
        ),
        ([span_of("0 0 * * * ?", 0, NOON), span_of("0 0 * * * ?", NOON - 1, is_on=False)], 12),
        ([span_of("nonsense", 0)], 0),
        ([span_of("60", 0, kind=ScheduleType.FIX_DELAY)], 0),
        ([span_of("", 0, kind=ScheduleType.NONE)], 0),
        ([span_of("2026-06-01 12:00:00", 0, kind=ScheduleType.AT)], 1),
        ([span_of("2026-06-01 12:00:00", NOON, kind=ScheduleType.AT)], 0),
        ([span_of("60", 0, kind=ScheduleType.FIX_RATE)], 0),
    ],
)
def test_a_history_expects_what_was_on(spans: list[Span], count: int) -> None:
    instants = list(expected_instants(spans, DAY))
    assert (len(instants), count_expected(spans, DAY)) == (count, count)
    assert instants == sorted(set(instants))


def test_a_month_of_each_second_is_counted_by_hours() -> None:
    month = Interval(at("2026-06-01T00:00"), at("2026-07-01T00:00"))
    assert count_expected([span_of("* * * * * ?", 0)], month) == 30 * 86_400
