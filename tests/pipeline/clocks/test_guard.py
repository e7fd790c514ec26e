"""Clock jumps: what the scan does before, at and after one; a node with a wrong clock does not scan."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy.exc import OperationalError

from app.clock import Millis
from app.domain.enums import MisfireStrategy, ScheduleType
from app.domain.schedules.planning import PRE_READ_MS
from app.domain.schedules.schedule import Schedule, next_times
from app.models.fire import Fire
from app.models.job import Job
from app.models.skip import Skip
from app.pipeline.clocks import guard as clock_guard
from app.pipeline.clocks.guard import (
    JUMP_MS,
    PERIOD_MS,
    SKEW_MAX_MS,
    STEADY_MS,
    ClockGuard,
    ClockNews,
    ClockWatch,
)
from app.pipeline.scan import scan
from app.settings.config import Config
from app.settings.home import access_tokens
from tests.domain.cron.brute import quartz_fires, unix_fires
from tests.support.domain_schedules import ms
from tests.support.factories import T0, all_rows, make_due_job, only_row
from workers.scheduler import SCAN_PERIOD_MS, Scheduler

HOUR: Millis = 3_600_000

#: expression, zone, after, until -> instants
Fires = Callable[[str, tzinfo, Millis, Millis], list[Millis]]


class Clocks:
    """A wall clock that can be set, a monotonic clock that cannot, and the clock of a database."""

    def __init__(self) -> None:
        self.wall_ms, self.monotonic_ms, self.database_ms, self.asked = T0, 5_000, T0, 0
        #: delay before the database reads its clock, and delay of its answer
        self.delays_ms = (0, 0)

    def pass_time(self, passed_ms: Millis, *, jump_ms: Millis = 0) -> None:
        self.wall_ms += passed_ms + jump_ms
        self.monotonic_ms += passed_ms
        self.database_ms += passed_ms

    def database(self, _session: object) -> Millis:
        self.asked += 1
        self.pass_time(self.delays_ms[0])
        read = self.database_ms
        self.pass_time(self.delays_ms[1])
        return read


@pytest.fixture
def clocks(database: str, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    made = Clocks()
    monkeypatch.setattr(clock_guard, "database_now_ms", made.database)
    return made


@pytest.fixture
def guard(clocks: Clocks) -> ClockGuard:
    return ClockGuard(lambda: clocks.wall_ms, lambda: clocks.monotonic_ms)


def test_the_clocks_are_compared_every_ten_seconds(clocks: Clocks, guard: ClockGuard) -> None:
    for _ in range(21):
        assert guard.check()
        clocks.pass_time(1_000)
    assert clocks.asked == 3
    assert guard.skew_ms == 0


@pytest.mark.parametrize("skew_ms", [SKEW_MAX_MS, -SKEW_MAX_MS])
def test_a_skew_of_one_second_is_tolerated_and_a_millisecond_more_is_not(
    clocks: Clocks, guard: ClockGuard, skew_ms: Millis
) -> None:
    clocks.database_ms += skew_ms
    assert guard.check()
    clocks.database_ms += 1 if skew_ms > 0 else -1
    clocks.pass_time(PERIOD_MS)
    assert not guard.check()
    clocks.pass_time(PERIOD_MS - 1)
    clocks.database_ms = clocks.wall_ms
    assert not guard.check(), "not compared again before its time"
    clocks.pass_time(1)
    assert guard.check()


@pytest.mark.parametrize("jump_ms", [JUMP_MS + 1, -JUMP_MS - 1, HOUR, -HOUR])
def test_a_jump_is_detected_before_anything_is_scanned(
    clocks: Clocks, guard: ClockGuard, jump_ms: Millis, caplog: pytest.LogCaptureFixture
) -> None:
    assert guard.check()
    clocks.pass_time(500, jump_ms=jump_ms)
    assert not guard.check()
    assert f"clock jumped by_ms={jump_ms}" in caplog.text
    clocks.pass_time(500, jump_ms=-jump_ms)
    assert guard.check(), "trusted again as soon as it is correct"


def test_nothing_is_claimed_after_a_jump_until_the_clocks_are_compared(
    clocks: Clocks, guard: ClockGuard
) -> None:
    assert not guard.is_steady(), "never compared"
    guard.check()
    assert guard.is_steady()
    clocks.pass_time(100, jump_ms=HOUR)
    assert not guard.is_steady(), "before any check"
    guard.check()
    assert not guard.is_steady(), "it is wrong"
    clocks.pass_time(100, jump_ms=-HOUR)
    assert not guard.is_steady()
    guard.check()
    assert guard.is_steady()


def test_a_clock_that_jumped_and_cannot_be_compared_is_not_trusted(
    clocks: Clocks, guard: ClockGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard.check()
    clocks.pass_time(100, jump_ms=HOUR)

    def away(_session: object) -> Millis:
        raise OSError

    monkeypatch.setattr(clock_guard, "database_now_ms", away)
    with pytest.raises(OSError):
        guard.check()
    assert not guard.is_steady()


@pytest.mark.parametrize("delays_ms", [(0, 4_000), (4_000, 0), (1_500, 900)])
def test_a_late_answer_proves_a_clock_wrong_but_never_right(
    clocks: Clocks, guard: ClockGuard, delays_ms: tuple[Millis, Millis]
) -> None:
    clocks.delays_ms = delays_ms
    assert guard.check()
    clocks.pass_time(100, jump_ms=HOUR)
    assert not guard.check(), "it jumped and is not trusted before a comparison"
    assert not guard.is_steady()
    clocks.pass_time(100, jump_ms=-2 * HOUR)
    assert not guard.check()
    clocks.pass_time(100, jump_ms=HOUR)
    assert guard.check()


@pytest.mark.parametrize(
    ("own_ms", "database_ms", "seen"),
    [(-HOUR, -HOUR, True), (0, -HOUR, True), (-HOUR, 0, False), (HOUR, HOUR, False), (0, -JUMP_MS, False)],
)
def test_a_clock_of_the_database_that_goes_back_is_seen(
    clocks: Clocks, guard: ClockGuard, own_ms: Millis, database_ms: Millis, seen: bool
) -> None:
    """Plans may have been made while both were ahead; by its own clock alone a node plans nothing."""
    guard.check()
    assert (guard.went_back, guard.seen_back) == (True, False), "assumed at the start"
    guard.forget_return()
    clocks.pass_time(PERIOD_MS, jump_ms=own_ms)
    clocks.database_ms += database_ms
    guard.check()
    assert (guard.went_back, guard.seen_back) == (seen, seen)


@pytest.mark.parametrize("delays_ms", [(4_000, 0), (0, 4_000)])
def test_a_late_answer_is_not_a_clock_that_goes_back(
    clocks: Clocks, guard: ClockGuard, delays_ms: tuple[Millis, Millis]
) -> None:
    guard.forget_return()
    for delays in ((0, 0), delays_ms, (0, 0), delays_ms, (0, 0)):
        clocks.delays_ms = delays
        guard.check()
        clocks.pass_time(PERIOD_MS)
    assert not guard.went_back


def test_gradual_slewing_is_not_a_jump(
    clocks: Clocks, guard: ClockGuard, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        guard.check()
        clocks.pass_time(1_000, jump_ms=JUMP_MS // 2)
        clocks.database_ms = clocks.wall_ms
    assert "jumped" not in caplog.text


def test_a_wrong_clock_is_reported_once_and_a_right_one_after_a_stable_minute(
    clocks: Clocks, guard: ClockGuard
) -> None:
    watch = ClockWatch(guard, lambda: clocks.monotonic_ms)

    def pass_rounds(count: int) -> list[ClockNews]:
        reported = []
        for _ in range(count):
            reported.append(watch.news())
            clocks.pass_time(1_000)
        return [news for news in reported if news]

    assert pass_rounds(30) == []
    clocks.wall_ms += 5_000
    assert pass_rounds(300) == [ClockNews(right=False, skew_ms=5_000)]
    for off_ms in (-4_900, 4_900, -4_900):  # it hovers around the limit: within, beyond, within
        clocks.wall_ms += off_ms
        assert pass_rounds(STEADY_MS // 1_000 - 5) == []
    assert pass_rounds(300) == [ClockNews(right=True, skew_ms=100)]
    clocks.wall_ms -= 7_000
    assert pass_rounds(300) == [ClockNews(right=False, skew_ms=-6_900)]


def test_a_guard_that_could_not_compare_reports_later(
    clocks: Clocks, guard: ClockGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_session: object) -> Millis:
        raise OperationalError("SELECT", {}, Exception("away"))

    watch = ClockWatch(guard, lambda: clocks.monotonic_ms)
    clocks.wall_ms += 5_000
    monkeypatch.setattr(clock_guard, "database_now_ms", away)
    with pytest.raises(OperationalError):
        watch.news()
    monkeypatch.setattr(clock_guard, "database_now_ms", clocks.database)
    assert watch.news() == ClockNews(right=False, skew_ms=5_000)


def test_a_node_with_a_wrong_clock_does_not_scan(clocks: Clocks, config: Config) -> None:
    make_due_job(T0)
    scheduler = Scheduler(replace(config, access_tokens=access_tokens(config)))
    scheduler._guard = ClockGuard(lambda: clocks.wall_ms, lambda: clocks.monotonic_ms)
    clocks.database_ms += 1_500
    assert scheduler.tick_scan(T0) == SCAN_PERIOD_MS
    assert all_rows(Fire) == []
    clocks.database_ms -= 1_500
    clocks.pass_time(PERIOD_MS)
    scheduler.tick_scan(T0)
    assert len(all_rows(Fire)) > 0


def test_a_clock_set_back_doubles_nothing(database: str) -> None:
    make_due_job(T0, "FIX_RATE", "1")
    for at_ms in (T0, T0 + 1_000, T0 - HOUR, T0 - 1_000, T0 + 1_500, T0 + 2_000):
        scan(node="one", zone="UTC", now_ms=at_ms)
    due = [fire.due_time for fire in all_rows(Fire)]
    assert due == [T0 + second * 1_000 for second in range(8)]
    assert all_rows(Skip) == []


@pytest.mark.parametrize(
    ("misfire", "fires", "skipped"), [("DO_NOTHING", 0, 3_600), ("FIRE_ONCE_NOW", 1, 3_599)]
)
def test_a_clock_set_forward_misfires_by_the_jobs_strategy(
    database: str, misfire: str, fires: int, skipped: int
) -> None:
    make_due_job(T0, "FIX_RATE", "1", misfire_strategy=misfire)
    at_ms = T0 + HOUR - 1
    scan(node="one", zone="UTC", now_ms=at_ms)
    assert len(all_rows(Fire, trigger_type="MISFIRE")) == fires
    assert (only_row(Skip).from_ms, only_row(Skip).skipped) == (T0, skipped)
    assert [fire.due_time for fire in all_rows(Fire, trigger_type="CRON")] == [
        T0 + HOUR + second * 1_000 for second in range(5)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_no_instant_is_doubled_or_lost_under_any_clock(database: str, seed: int) -> None:
    dice = random.Random(seed)
    make_due_job(T0, "FIX_RATE", "7", misfire_strategy=dice.choice(["DO_NOTHING", "FIRE_ONCE_NOW"]))
    at_ms = latest_ms = T0
    for _ in range(40):
        at_ms += dice.choice([1_000, 1_000, 1_000, 30_000, -20_000, -500])
        latest_ms = max(latest_ms, at_ms)
        scan(node="one", zone="UTC", now_ms=at_ms)
    fired = [fire.due_time for fire in all_rows(Fire)]
    skipped = [instant for skip in all_rows(Skip) for instant in range(skip.from_ms, skip.to_ms + 1, 7_000)]
    assert len(set(fired + skipped)) == len(fired) + len(skipped)
    assert set(range(T0, latest_ms + 1, 7_000)) <= set(fired + skipped)
    assert only_row(Job).trigger_next_time > latest_ms


#: zone -> local dates of its clock changes, forward and back; Lord Howe's are half an hour
CHANGES = {
    "America/New_York": ("2025-03-09", "2025-11-02"),
    "Europe/Berlin": ("2025-03-30", "2025-10-26"),
    "Australia/Lord_Howe": ("2025-10-05", "2025-04-06"),
}
CHANGE_DAYS = [(zone, day) for zone, days in CHANGES.items() for day in days]


@pytest.mark.parametrize(("zone", "day"), CHANGE_DAYS)
@pytest.mark.parametrize(
    ("expression", "expected_of"),
    [
        ("0 0/10 1-3 * * ?", quartz_fires),
        ("0 15 2 * * ?", quartz_fires),
        ("*/10 1-3 * * *", unix_fires),
        ("15 2 * * *", unix_fires),
    ],
)
def test_scans_across_a_clock_change_match_an_independent_evaluator(
    database: str, zone: str, day: str, expression: str, expected_of: Fires
) -> None:
    midnight = ms(f"{day} 00:00", zone)
    expected = expected_of(expression, ZoneInfo(zone), midnight, midnight + 6 * HOUR)
    first = next_times(Schedule(ScheduleType.CRON, expression, zone), midnight, 1)[0]
    make_due_job(first, "CRON", expression, time_zone=zone)
    while (next_ms := only_row(Job).trigger_next_time) <= midnight + 6 * HOUR:
        scan(node="one", zone="UTC", now_ms=next_ms - 1_000)
    assert [fire.due_time for fire in all_rows(Fire)] == expected
    assert all_rows(Skip) == []


@pytest.mark.parametrize(("zone", "day"), CHANGE_DAYS)
def test_a_fixed_rate_ignores_clock_changes(database: str, zone: str, day: str) -> None:
    midnight = ms(f"{day} 00:00", zone)
    make_due_job(midnight, "FIX_RATE", "600", time_zone=zone)
    while (next_ms := only_row(Job).trigger_next_time) <= midnight + 6 * HOUR:
        scan(node="one", zone=zone, now_ms=next_ms)
    assert [fire.due_time for fire in all_rows(Fire)] == list(
        range(midnight, midnight + 6 * HOUR + 1, 600_000)
    )


@pytest.mark.parametrize(("zone", "day"), CHANGE_DAYS)
@pytest.mark.parametrize(
    ("expression", "expected_of"), [("0 0/10 0-4 * * ?", quartz_fires), ("*/10 0-4 * * *", unix_fires)]
)
@pytest.mark.parametrize("misfire", MisfireStrategy)
def test_setting_the_clock_around_a_clock_change_loses_and_doubles_nothing(
    database: str, zone: str, day: str, expression: str, expected_of: Fires, misfire: MisfireStrategy
) -> None:
    """Fires and skips match the schedule after jumps to local times that do not exist or exist twice."""
    dice = random.Random(f"{zone} {day} {expression} {misfire}")
    change = ms(f"{day} 02:00", zone)
    begin, end = change - 2 * 24 * HOUR, change + 2 * 24 * HOUR
    expected = expected_of(expression, ZoneInfo(zone), begin, end)
    make_due_job(expected[0], "CRON", expression, time_zone=zone, misfire_strategy=misfire.value)
    at_ms, decided_ms = change - 2 * HOUR, 0
    for _ in range(25):
        scan(node="one", zone="UTC", now_ms=at_ms)
        decided_ms = max(decided_ms, at_ms)
        jump_ms = dice.choice([600_000, 600_000, 1_800_000, HOUR, -HOUR, -1_800_000, 24 * HOUR, -24 * HOUR])
        at_ms = (
            at_ms + jump_ms
            if change - 24 * HOUR < at_ms + jump_ms < change + 24 * HOUR
            else change + dice.randrange(-HOUR, HOUR)
        )
    while only_row(Job).trigger_next_time <= decided_ms:  # RUN_ALL plans twenty missed instants a pass.
        scan(node="one", zone="UTC", now_ms=decided_ms)
    fired = [fire.due_time for fire in all_rows(Fire)]
    ranges = [
        [instant for instant in expected if skip.from_ms <= instant <= skip.to_ms] for skip in all_rows(Skip)
    ]
    assert [len(instants) for instants in ranges] == [skip.skipped for skip in all_rows(Skip)]
    assert sorted(fired + [instant for instants in ranges for instant in instants]) == [
        instant for instant in expected if instant <= decided_ms + PRE_READ_MS
    ]
