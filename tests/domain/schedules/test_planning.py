"""plan(): every branch, and that no instant is lost or doubled.

Source: docs/reference/pipeline.md, section 1.
"""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.clock import DAY_MS, Millis
from app.domain.enums import MisfireStrategy, ScheduleType, TriggerType
from app.domain.schedules.planning import (
    MAX_COUNTED,
    MAX_COUNTED_UNIX,
    MAX_FIRES_A_PASS,
    PRE_READ_MS,
    Plan,
    SkippedRange,
    plan,
    plan_delay,
)
from app.domain.schedules.schedule import Schedule, next_after_ms
from tests.support.truth_table import truth_table

T0: Millis = 1_714_532_645_000
NOTHING, ONCE, ALL = MisfireStrategy
YEAR_S = 365 * 86_400


def every(seconds: int, *, until_ms: Millis | None = None) -> Callable[[Millis], Millis | None]:
    """Return the next_after of a fixed rate."""

    def next_after(instant: Millis) -> Millis | None:
        following = instant + seconds * 1000
        return None if until_ms is not None and following > until_ms else following

    return next_after


def calendar(conf: str, *, until_ms: Millis = 0) -> Callable[[Millis], Millis | None]:
    """Return the next_after of a cron expression in UTC."""
    schedule = Schedule(ScheduleType.CRON, conf, "UTC", 0, until_ms)
    return lambda instant: next_after_ms(schedule, instant)


def rate(due_ms: Millis, seconds: int, misfire: MisfireStrategy = NOTHING, now_ms: Millis = T0) -> Plan:
    """Plan a fixed rate."""
    return plan(due_ms, misfire, now_ms=now_ms, next_after=every(seconds), period_ms=seconds * 1000)


def crons(*instants: Millis) -> tuple[tuple[Millis, TriggerType], ...]:
    return tuple((instant, TriggerType.CRON) for instant in instants)


@pytest.mark.parametrize(
    ("late_ms", "fires", "skipped", "next_ms"),
    [
        pytest.param(0, crons(T0), None, T0 + 60_000, id="on time"),
        pytest.param(1, crons(T0 - 1), None, T0 + 59_999, id="a moment late"),
        pytest.param(PRE_READ_MS, crons(T0 - 5000), None, T0 + 55_000, id="just not missed"),
        pytest.param(
            PRE_READ_MS + 1, (), SkippedRange(T0 - 5001, T0 - 5001, 1), T0 + 54_999, id="just missed"
        ),
        pytest.param(-PRE_READ_MS, crons(T0 + 5000), None, T0 + 65_000, id="as far ahead as the scan looks"),
        pytest.param(-PRE_READ_MS - 1, (), None, T0 + 5001, id="not due yet"),
    ],
)
def test_the_boundary_between_late_and_missed(
    late_ms: Millis,
    fires: tuple[tuple[Millis, TriggerType], ...],
    skipped: SkippedRange | None,
    next_ms: Millis,
) -> None:
    assert rate(T0 - late_ms, 60) == Plan(fires, skipped, next_ms)


def test_every_instant_up_to_five_seconds_ahead_becomes_a_fire() -> None:
    decided = rate(T0 - 3000, 1)
    assert decided.fires == crons(*range(T0 - 3000, T0 + 5001, 1000))
    assert (decided.next_ms, decided.last_ms) == (T0 + 6000, T0 + 5000)


def test_twenty_fires_per_scan_and_the_rest_in_the_next() -> None:
    def every_100_ms(instant: Millis) -> Millis:
        return instant + 100

    first = plan(T0 - 5000, NOTHING, now_ms=T0, next_after=every_100_ms)
    assert len(first.fires) == MAX_FIRES_A_PASS
    assert first.next_ms == T0 - 5000 + 20 * 100
    second = plan(first.next_ms, NOTHING, now_ms=T0, next_after=every_100_ms)
    assert second.fires[0][0] == first.fires[-1][0] + 100


def test_missed_instants_are_skipped_and_the_schedule_continues() -> None:
    decided = rate(T0 - 60_000, 10)
    assert decided.skipped_range == SkippedRange(T0 - 60_000, T0, 7)
    assert decided.fires == ()
    assert decided.next_ms == T0 + 10_000


def test_instants_shortly_after_a_gap_are_fired_in_the_same_scan() -> None:
    decided = rate(T0 - 61_000, 4)
    assert decided.skipped_range == SkippedRange(T0 - 61_000, T0 - 1000, 16)
    assert decided.fires == crons(T0 + 3000)
    assert decided.next_ms == T0 + 7000


def test_fire_once_fires_the_latest_missed_instant_and_skips_the_others() -> None:
    decided = rate(T0 - 61_000, 4, ONCE)
    assert decided.fires == ((T0 - 1000, TriggerType.MISFIRE), *crons(T0 + 3000))
    assert decided.skipped_range == SkippedRange(T0 - 61_000, T0 - 5000, 15)
    assert decided.next_ms == T0 + 7000


def test_fire_once_of_a_single_missed_instant_skips_nothing() -> None:
    assert rate(T0 - 30_000, 60, ONCE) == Plan(((T0 - 30_000, TriggerType.MISFIRE),), None, T0 + 30_000)


@truth_table("misfire", MisfireStrategy)
@truth_table("seconds", [1, 7, 60, 3600])
@truth_table("late_s", [6, 61, 40_001, 3 * YEAR_S + 5])
def test_a_fixed_rate_keeps_its_phase_over_any_gap(
    seconds: int, late_s: int, misfire: MisfireStrategy
) -> None:
    due_ms = T0 - late_s * 1000 + 123
    decided = rate(due_ms, seconds, misfire)
    assert decided.next_ms is not None
    assert (decided.next_ms - due_ms) % (seconds * 1000) == 0
    assert decided.next_ms > T0 + PRE_READ_MS or len(decided.fires) >= MAX_FIRES_A_PASS


@truth_table("misfire, count, to_ms", [(NOTHING, MAX_COUNTED, T0), (ONCE, MAX_COUNTED, T0 - 1000)])
@truth_table("conf", ["* * * * * ?", ""])
def test_a_gap_of_more_instants_than_are_counted(
    conf: str, misfire: MisfireStrategy, count: int, to_ms: Millis
) -> None:
    due_ms = T0 - 10_500_000  # 10,501 instants
    decided = (
        plan(due_ms, misfire, now_ms=T0, next_after=calendar(conf))
        if conf
        else plan(due_ms, misfire, now_ms=T0, next_after=every(1), period_ms=1000)
    )
    assert decided.skipped_range == SkippedRange(due_ms, to_ms, count)
    assert [kind for _, kind in decided.fires].count(TriggerType.MISFIRE) == (misfire is ONCE)
    assert decided.fires[-1] == (T0 + 5000, TriggerType.CRON)


@truth_table("instants", [MAX_COUNTED - 2, MAX_COUNTED - 1, MAX_COUNTED, MAX_COUNTED + 1, MAX_COUNTED + 2])
@truth_table("misfire", [NOTHING, ONCE])
def test_the_count_at_its_limit(instants: int, misfire: MisfireStrategy) -> None:
    due_ms = T0 - (instants - 1) * 1000
    by_period = plan(due_ms, misfire, now_ms=T0, next_after=every(1), period_ms=1000)
    by_walking = plan(due_ms, misfire, now_ms=T0, next_after=calendar("* * * * * ?"))
    assert by_period.fires == by_walking.fires
    assert by_period.next_ms == by_walking.next_ms
    assert by_period.skipped_range == by_walking.skipped_range
    assert by_walking.skipped_range is not None
    assert by_walking.skipped_range.count == min(instants - (misfire is ONCE), MAX_COUNTED)


@truth_table(
    "conf, years",
    [
        ("* * * * * ?", 3),
        ("0 0/5 * * * ?", 2),
        ("0 0 8 ? * MON-FRI", 40),
        ("0 30 3 29 2 ?", 20),
        ("0 0 0 1 1 ? 2023/2", 5),
    ],
)
def test_a_calendar_job_after_years_without_scans(conf: str, years: int) -> None:
    next_after = calendar(conf)
    due_ms = next_after(T0 - years * YEAR_S * 1000)
    assert due_ms is not None
    decided = plan(due_ms, ONCE, now_ms=T0, next_after=next_after)
    ((once_ms, kind), *_) = decided.fires
    assert kind is TriggerType.MISFIRE
    following = next_after(once_ms)
    assert once_ms <= T0
    assert following is None or following > T0, "the latest missed instant is fired"
    if decided.skipped_range is not None:
        assert next_after(decided.skipped_range.to_ms) == once_ms, "the skip ends just before it"


@truth_table("misfire", MisfireStrategy)
@truth_table(
    "conf, late_days, ended_days",
    [
        ("*/5 * * * *", 40, 0),
        ("* 9-17 * * mon-fri", 400, 0),
        ("* * * * *", 900, 400),
        ("* * * ? 1 * 2023", 900, 0),
    ],
)
def test_a_long_outage_costs_a_bounded_number_of_searches(
    conf: str, late_days: int, ended_days: int, misfire: MisfireStrategy
) -> None:
    """An expression of five fields is searched at some 40 µs, and a stop plans under the job's lock."""
    next_after = calendar(conf, until_ms=T0 - ended_days * DAY_MS if ended_days else 0)
    searched: list[Millis] = []

    def search(instant: Millis) -> Millis | None:
        searched.append(instant)
        return next_after(instant)

    due_ms = next_after(T0 - late_days * DAY_MS)
    assert due_ms is not None
    decided = plan(due_ms, misfire, now_ms=T0, next_after=search, count_max=MAX_COUNTED_UNIX)
    assert decided.skipped_range is not None
    assert decided.skipped_range.count == MAX_COUNTED_UNIX
    assert len(searched) <= MAX_COUNTED_UNIX + (750 if misfire is ALL else 250)
    if misfire is ALL and decided.fires:
        assert decided.fires[0] == (next_after(decided.skipped_range.to_ms), TriggerType.MISFIRE)
        return
    last_ms = next_after(decided.skipped_range.to_ms) if misfire is ONCE else decided.skipped_range.to_ms
    assert last_ms is not None
    assert last_ms <= T0
    following = next_after(last_ms)
    assert following is None or following > T0, "the latest missed instant"


def test_a_calendar_that_ended_long_ago_ends_its_job() -> None:
    due_ms = T0 - 20_000_000
    next_after = calendar("* * * * * ?", until_ms=T0 - 5_000_000)
    decided = plan(due_ms, NOTHING, now_ms=T0, next_after=next_after)
    assert decided == Plan((), SkippedRange(due_ms, T0 - 5_000_000, MAX_COUNTED), None)
    fire_once = plan(due_ms, ONCE, now_ms=T0, next_after=next_after)
    assert fire_once == Plan(
        ((T0 - 5_000_000, TriggerType.MISFIRE),), SkippedRange(due_ms, T0 - 5_001_000, MAX_COUNTED), None
    )


def test_the_end_of_a_schedule_is_not_a_next_time() -> None:
    decided = plan(T0, NOTHING, now_ms=T0, next_after=every(1, until_ms=T0 + 2000))
    assert decided == Plan(crons(T0, T0 + 1000, T0 + 2000), None, None)


def test_the_end_of_a_fixed_rate_inside_a_gap() -> None:
    """The instants after the end of the validity are not counted as missed."""
    decided = plan(
        T0 - 60_000, NOTHING, now_ms=T0, next_after=every(10, until_ms=T0 - 35_000), period_ms=10_000
    )
    assert decided == Plan((), SkippedRange(T0 - 60_000, T0 - 40_000, 3), None)
    fire_once = plan(
        T0 - 60_000, ONCE, now_ms=T0, next_after=every(10, until_ms=T0 - 35_000), period_ms=10_000
    )
    assert fire_once == Plan(
        ((T0 - 40_000, TriggerType.MISFIRE),), SkippedRange(T0 - 60_000, T0 - 50_000, 2), None
    )


@truth_table(
    "late_ms, misfire, fires, skipped, next_ms",
    [
        (0, NOTHING, crons(T0), None, 99),
        (-5000, NOTHING, crons(T0 + 5000), None, 99),
        (5000, NOTHING, crons(T0 - 5000), None, 99),
        (5001, NOTHING, (), SkippedRange(T0 - 5001, T0 - 5001, 1), T0 + 30_000),
        (5001, ONCE, ((T0 - 5001, TriggerType.MISFIRE),), None, 99),
    ],
)
def test_a_fixed_delay_has_one_fire_and_waits_for_its_result(
    late_ms: Millis,
    misfire: MisfireStrategy,
    fires: tuple[tuple[Millis, TriggerType], ...],
    skipped: SkippedRange | None,
    next_ms: Millis,
) -> None:
    decided = plan_delay(T0 - late_ms, misfire, now_ms=T0, following_ms=T0 + 30_000, after_run_ms=99)
    assert decided == Plan(fires, skipped, next_ms)


def test_a_plan_that_does_nothing_has_no_last_instant() -> None:
    assert Plan((), None, T0).last_ms is None


def decided_instants(plans: Iterable[Plan], next_after: Callable[[Millis], Millis | None]) -> list[Millis]:
    """Return every instant the plans fire or skip, by iterating over their skips."""
    found: list[Millis] = []
    for decided in plans:
        found += [instant for instant, _ in decided.fires]
        instant = decided.skipped_range.from_ms if decided.skipped_range else None
        while decided.skipped_range and instant is not None and instant <= decided.skipped_range.to_ms:
            found.append(instant)
            instant = next_after(instant)
    return sorted(found)


waits = st.lists(
    st.one_of(st.integers(0, 2000), st.integers(0, 30_000), st.integers(0, 4_000_000)),
    min_size=1,
    max_size=12,
)
schedules = st.one_of(
    st.integers(1, 400).map(lambda seconds: (every(seconds), seconds * 1000)),
    st.integers(1, 400).map(lambda seconds: (every(seconds, until_ms=T0 + 1_000_000), seconds * 1000)),
    st.sampled_from(["* * * * * ?", "0/7 * * * * ?", "0 0/2 * * * ?", "5,6,40 1,3 * * * ?"]).map(
        lambda conf: (calendar(conf), 0)
    ),
    st.sampled_from(["* * * * * ?", "0/9 * * * * ?"]).map(
        lambda conf: (calendar(conf, until_ms=T0 + 900_000), 0)
    ),
)


@given(schedule=schedules, gaps=waits, misfire=st.sampled_from(MisfireStrategy), due=st.integers(-20, 20))
@example(schedule=(every(10, until_ms=T0 + 25_000), 10_000), gaps=[0, 60_000], misfire=ONCE, due=0)
def test_no_instant_is_lost_or_doubled_whenever_the_scans_run(
    schedule: tuple[Callable[[Millis], Millis | None], int],
    gaps: list[int],
    misfire: MisfireStrategy,
    due: int,
) -> None:
    next_after, period_ms = schedule
    first = next_after(T0 + due * 1000)
    assert first is not None
    due_ms: Millis | None = first
    now_ms, plans = T0, []
    for gap in gaps:
        now_ms += gap
        for _ in range(30):  # a scan makes at most twenty fires; the next one continues
            if due_ms is None or due_ms > now_ms + PRE_READ_MS:
                break
            decided = plan(due_ms, misfire, now_ms=now_ms, next_after=next_after, period_ms=period_ms)
            assert len(decided.fires) <= MAX_FIRES_A_PASS + (misfire is ONCE)
            plans.append(decided)
            due_ms = decided.next_ms
    expected, instant = [], first
    while instant is not None and instant <= now_ms + PRE_READ_MS:
        expected.append(instant)
        instant = next_after(instant)
    assert decided_instants(plans, next_after) == expected
    assert due_ms == instant
