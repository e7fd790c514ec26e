"""RUN_ALL: which missed instants run, against a listing of all of them."""

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.enums import MisfireStrategy, ScheduleType, TriggerType
from app.domain.schedules.planning import MAX_FIRES_A_PASS, PRE_READ_MS, Plan, SkippedRange, plan
from app.domain.schedules.run_all import RunAll
from app.domain.schedules.schedule import Schedule, next_after_ms
from tests.support.truth_table import truth_table

T0: Millis = 1_714_532_645_000
NextAfter = Callable[[Millis], Millis | None]


def cron(conf: str, until_ms: Millis = 0, zone: str = "UTC") -> NextAfter:
    schedule = Schedule(ScheduleType.CRON, conf, zone, 0, until_ms)
    return lambda instant: next_after_ms(schedule, instant)


def rate(period_ms: Millis, until_ms: Millis = 0) -> NextAfter:
    return lambda at_ms: None if 0 < until_ms < at_ms + period_ms else at_ms + period_ms


def run_all(
    due_ms: Millis, next_after: NextAfter, limits: RunAll, period_ms: Millis = 0, now_ms: Millis = T0
) -> Plan:
    return plan(
        due_ms,
        MisfireStrategy.RUN_ALL,
        now_ms=now_ms,
        next_after=next_after,
        period_ms=period_ms,
        run_all=limits,
    )


def missed(*instants: Millis) -> tuple[tuple[Millis, TriggerType], ...]:
    return tuple((instant, TriggerType.MISFIRE) for instant in instants)


@truth_table(
    "late_ms, limits, first_ms, count, skipped",
    [
        (59_000, RunAll(), T0 - 59_000, 6, None),
        # the newest
        (59_000, RunAll(most=2), T0 - 19_000, 2, 4),
        # those that are young enough, the limit included
        (59_000, RunAll(max_age_ms=29_000), T0 - 29_000, 3, 3),
        (59_000, RunAll(max_age_ms=28_999), T0 - 19_000, 2, 4),
        # whichever leaves fewer
        (59_000, RunAll(1, 29_000), T0 - 9_000, 1, 5),
        (59_000, RunAll(5, 10_000), T0 - 9_000, 1, 5),
        (59_000, RunAll(max_age_ms=8_999), None, 0, 6),
        (PRE_READ_MS + 1, RunAll(), T0 - 5_001, 1, None),
    ],
)
@truth_table("is_computed", [True, False])
def test_the_newest_that_are_young_enough_run(
    late_ms: Millis,
    limits: RunAll,
    first_ms: Millis | None,
    count: int,
    skipped: int | None,
    is_computed: bool,
) -> None:
    period_ms, due_ms = 10_000, T0 - late_ms
    step = rate(period_ms) if is_computed else _listed(due_ms, period_ms)
    decided = run_all(due_ms, step, limits, period_ms if is_computed else 0)
    found = [at_ms for at_ms, kind in decided.fires if kind is TriggerType.MISFIRE]
    assert found == ([] if first_ms is None else list(range(first_ms, T0 + 1, period_ms)))
    assert len(found) == count
    assert (decided.skipped_range.count if decided.skipped_range else None) == skipped
    assert decided.skipped_range is None or decided.skipped_range.from_ms == due_ms


def _listed(first_ms: Millis, period_ms: Millis) -> NextAfter:
    """Return the search for instants with a phase, as a cron has."""
    return lambda at_ms: first_ms + max(0, (at_ms - first_ms) // period_ms + 1) * period_ms


def test_twenty_a_pass_and_the_last_ones_with_what_is_due_ahead() -> None:
    due_ms, step = T0 - 44_000, rate(SECOND_MS)
    first = run_all(due_ms, step, RunAll(most=41), SECOND_MS)
    assert first.skipped_range == SkippedRange(due_ms, T0 - 41_000, 4)
    assert first.fires == missed(*range(T0 - 40_000, T0 - 20_000, SECOND_MS))
    assert first.next_ms == T0 - 20_000
    second = run_all(T0 - 20_000, step, RunAll(most=41), SECOND_MS)
    assert (second.skipped_range, len(second.fires)) == (None, MAX_FIRES_A_PASS)
    assert second.next_ms == T0
    # one that came due meanwhile joins them
    third = run_all(T0 - 6_000, step, RunAll(), SECOND_MS)
    assert third.fires[:7] == missed(*range(T0 - 6_000, T0 + 1, SECOND_MS))
    assert {kind for _, kind in third.fires[7:]} == {TriggerType.CRON}
    assert third.next_ms == T0 + 6_000


@truth_table(
    "conf, late_ms, limits",
    [
        # each second of one hour of the day, which ended long ago
        ("* * 1 * * ?", 20 * DAY_MS, RunAll(100, 20 * DAY_MS)),
        ("* * * * * ?", 30 * DAY_MS, RunAll(100, 30 * DAY_MS)),
        ("0 0 0 1 1 ?", 9_000 * DAY_MS, RunAll(5, 9_000 * DAY_MS)),
    ],
)
def test_a_long_outage_is_not_listed_to_find_a_few(conf: str, late_ms: Millis, limits: RunAll) -> None:
    next_after, searched = cron(conf), list[Millis]()

    def search(at_ms: Millis) -> Millis | None:
        searched.append(at_ms)
        return next_after(at_ms)

    due_ms = next_after(T0 - late_ms)
    assert due_ms is not None
    decided = plan(
        due_ms, MisfireStrategy.RUN_ALL, now_ms=T0, next_after=search, count_max=500, run_all=limits
    )
    assert decided.skipped_range is not None
    assert len(searched) <= 500 + 30 * limits.most
    instant, count = decided.fires[0][0], 0
    while instant is not None and instant <= T0:
        instant, count = next_after(instant), count + 1
    assert count == limits.most


@given(
    conf=st.sampled_from(
        [
            *("* * * * * ?", "0/7 * * * * ?", "0 0/2 * * * ?", "5,6,40 1,3 * * * ?", "* 30 * * * ?"),
            *(1, 7, 60, 311),
        ]
    ),
    late_s=st.integers(6, 20_000),
    most=st.integers(1, 200),
    max_age_s=st.one_of(st.integers(1, 300), st.integers(1, 20_000)),
    ended_s=st.one_of(st.just(0), st.integers(1, 20_000)),
    phase_ms=st.integers(0, 999),
)
@example(conf="* 30 * * * ?", late_s=9_000, most=200, max_age_s=20_000, ended_s=0, phase_ms=0)
def test_what_runs_is_what_a_listing_says(
    conf: str | int, late_s: int, most: int, max_age_s: int, ended_s: int, phase_ms: Millis
) -> None:
    """Passes until nothing is missed: the fires, and the skips, each instant once."""
    until_ms = T0 - ended_s * SECOND_MS if ended_s else 0
    period_ms = conf * SECOND_MS if isinstance(conf, int) else 0
    next_after = cron(conf, until_ms) if isinstance(conf, str) else rate(period_ms, until_ms)
    due_ms = next_after(T0 - late_s * SECOND_MS - phase_ms)
    if due_ms is None or due_ms >= T0 - PRE_READ_MS:
        return
    expected, instant = list[Millis](), due_ms
    while instant is not None and instant <= T0:
        expected.append(instant)
        instant = next_after(instant)
    kept = [at_ms for at_ms in expected[-most:] if at_ms >= T0 - max_age_s * SECOND_MS]
    fires, skips, next_ms = list[Millis](), list[SkippedRange](), due_ms
    while next_ms is not None and next_ms < T0 - PRE_READ_MS:
        decided = run_all(next_ms, next_after, RunAll(most, max_age_s * SECOND_MS), period_ms)
        fires += [at_ms for at_ms, _ in decided.fires if at_ms <= T0]
        skips += [decided.skipped_range] if decided.skipped_range else []
        assert len(decided.fires) <= MAX_FIRES_A_PASS
        next_ms = decided.next_ms
    rest = [at_ms for at_ms in expected if next_ms is not None and at_ms >= next_ms]
    assert [*fires, *rest] == kept
    dropped = expected[: len(expected) - len(kept)]
    wanted = [SkippedRange(dropped[0], dropped[-1], min(len(dropped), 10_000))] if dropped else []
    assert skips == wanted


def test_after_an_hour_all_runs_of_each_minute_are_made_up_for() -> None:
    next_after, due_ms = cron("0 * * * * ?"), T0 - HOUR_MS
    first = next_after(due_ms)
    assert first is not None
    found, next_ms = list[Millis](), first
    while next_ms < T0 - PRE_READ_MS:
        decided = run_all(next_ms, next_after, RunAll())
        found += [at_ms for at_ms, kind in decided.fires if kind is TriggerType.MISFIRE]
        assert decided.skipped_range is None
        assert decided.next_ms is not None
        next_ms = decided.next_ms
    assert found == list(range(first, T0 + 1, MINUTE_MS))


def test_in_an_hour_that_clocks_repeat_the_young_ones_run_and_none_to_come_is_skipped() -> None:
    next_after = cron("0 */5 1-3 * * ?", zone="Europe/Berlin")
    due_ms, now_ms = 1_761_436_200_000, 1_761_440_558_839  # 01:50, 02:02:38 with the clocks set back
    every = [due_ms, due_ms + 5 * MINUTE_MS, due_ms + 70 * MINUTE_MS]
    found = run_all(due_ms, next_after, RunAll(max_age_ms=30 * MINUTE_MS), now_ms=now_ms)
    assert found.fires == missed(every[2])
    assert found.skipped_range == SkippedRange(every[0], every[1], 2)
