"""Clock jumps on SQLite, which has no second clock, and with a server that has the clock of this host.

On SQLite a clock that jumps forward is held; what it left in the future is corrected.
"""

from dataclasses import replace

import pytest

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.enums import FireState
from app.domain.schedules.planning import PRE_READ_MS
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.log import JobLog
from app.models.node import SKEW_MAX_MS
from app.models.skip import SKIPPED_MAX, Skip
from app.pipeline.clocks import guard as clock_guard
from app.pipeline.clocks import returns as clock_return
from app.pipeline.clocks.guard import HOLD_MS, STEADY_MS, ClockGuard, ClockNews, ClockWatch
from app.pipeline.clocks.returns import bring_back
from app.settings.config import Config
from app.settings.home import access_tokens
from tests.pipeline.steps import claim_fires
from tests.support.factories import T0, all_rows, make_due_job, make_fire, make_job, make_run, only_row, save
from workers.scheduler import Scheduler

pytestmark = pytest.mark.databases("sqlite")
HOUR: Millis = 3_600_000
JUMP: Millis = 200_000


class Node:
    """A scheduler without threads on its own clocks: one scan per second, then a claim of what is due."""

    def __init__(self, config: Config) -> None:
        self.wall_ms, self.monotonic_ms = T0, 5_000
        self.scheduler = Scheduler(replace(config, access_tokens=access_tokens(config), time_zone="UTC"))
        self.guard = ClockGuard(lambda: self.wall_ms, lambda: self.monotonic_ms)
        self.scheduler._guard = self.guard

    def go(self, seconds: int, *, jump_ms: Millis = 0) -> None:
        """Set the clock, then let time pass."""
        self.wall_ms += jump_ms
        for _ in range(seconds):
            self.scheduler.tick_scan(self.wall_ms)
            if self.guard.is_steady():
                claim_fires(
                    [fire for fire in all_rows(Fire, state="PENDING") if fire.due_time <= self.wall_ms],
                    now_ms=self.wall_ms,
                )
            self.wall_ms += 1_000
            self.monotonic_ms += 1_000


@pytest.fixture
def node(database: str, config: Config) -> Node:
    return Node(config)


def started(job: Job | None = None) -> list[Millis]:
    """Return the instants that have a run, in seconds after T0."""
    logs = all_rows(JobLog) if job is None else all_rows(JobLog, job_id=job.id)
    return [((log.fire_time or 0) - T0) // 1_000 for log in logs]


def test_a_jump_forward_and_back_starts_nothing_early_and_omits_nothing(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    make_due_job(T0, conf="5")
    node.go(10)
    fires = len(all_rows(Fire))
    node.go(HOLD_MS // 1_000 - 1, jump_ms=JUMP)
    assert started() == [0, 5]
    assert len(all_rows(Fire)) == fires, "nothing is scanned"
    assert "clock jumped by_ms=200000" in caplog.text
    assert "scheduling paused" in caplog.text
    node.go(20, jump_ms=-JUMP)
    gap = only_row(Skip)
    skipped = range((gap.from_ms - T0) // 1_000, (gap.to_ms - T0) // 1_000 + 1, 5)
    assert sorted([*started(), *skipped]) == list(range(0, 10 + HOLD_MS // 1_000 - 1 + 20, 5))
    assert only_row(Job).trigger_next_time <= node.wall_ms + 5_000 + 5_000


def test_a_clock_that_stays_ahead_is_trusted_after_a_while(node: Node) -> None:
    make_due_job(T0, conf="5")
    node.go(10)
    node.go(HOLD_MS // 1_000, jump_ms=JUMP)
    assert started() == [0, 5]
    node.go(11)
    assert [instant for instant in started() if instant > JUMP // 1_000] == [245, 250]


def test_a_second_jump_restarts_the_wait(node: Node) -> None:
    node.go(1)
    node.go(20, jump_ms=JUMP)
    node.go(20, jump_ms=JUMP)
    assert not node.guard.check()
    node.go(11)
    assert node.guard.check()


def test_gradual_slewing_is_not_a_jump(node: Node) -> None:
    for _ in range(20):
        node.go(1, jump_ms=500)
        assert node.guard.is_steady()


def test_a_clock_set_back_is_trusted_at_once(node: Node) -> None:
    node.go(2)
    node.go(1, jump_ms=-HOUR)
    assert node.guard.is_steady()


def go_ahead_and_back(node: Node, *, for_s: int = 40) -> None:
    """Let the clock be ahead for a while, including the HOLD_MS of waiting, then correct it."""
    node.go(1)
    node.go(for_s, jump_ms=JUMP)
    node.go(1, jump_ms=-JUMP)


def test_no_instant_starts_twice_or_early_after_the_clock_is_corrected(node: Node) -> None:
    """Runs of the wrong clock are not started again, instants it skipped are recorded, the rest starts."""
    make_due_job(T0, conf="5")
    go_ahead_and_back(node)
    early = started()
    assert max(early) > JUMP // 1_000
    assert not [fire for fire in all_rows(Fire, state="PENDING") if fire.due_time > node.wall_ms + 5_000], (
        "nothing waits in the future"
    )
    node.go(JUMP // 1_000 + 60)
    assert len(set(started())) == len(started())
    skipped = [
        instant
        for skip in all_rows(Skip)
        for instant in range((skip.from_ms - T0) // 1_000, (skip.to_ms - T0) // 1_000 + 1, 5)
    ]
    late = [instant for instant in started() if instant not in early]
    assert sorted([*early, *late, *skipped]) == list(range(0, (node.wall_ms - T0) // 1_000, 5))


def test_an_instant_skipped_by_the_wrong_clock_starts_when_it_is_due(node: Node) -> None:
    """A daily job must not lose its day because a clock was ahead for a while."""
    daily = make_due_job(T0 + 120_000, "CRON", "5 6 3 * * ?", time_zone="UTC")  # T0 is 03:04:05
    go_ahead_and_back(node)
    assert all_rows(Skip) == []
    assert only_row(Job).trigger_next_time == T0 + 120_000
    node.go(80)
    assert started(daily) == [120]
    assert only_row(Job).trigger_next_time == T0 + 120_000 + 24 * HOUR


def test_a_skip_is_cut_at_instants_that_are_still_to_come(node: Node) -> None:
    make_due_job(T0 + 20_000, "FIX_RATE", "50", misfire_strategy="DO_NOTHING")
    node.go(1)
    node.go(30, jump_ms=JUMP)  # trusted in its last round
    node.go(10)
    assert (only_row(Skip).from_ms, only_row(Skip).to_ms) == (T0 + 20_000, T0 + 220_000)
    node.go(1, jump_ms=-JUMP)
    skip = only_row(Skip)
    assert (skip.from_ms, skip.to_ms, skip.skipped) == (T0 + 20_000, T0 + 20_000, 1)
    assert only_row(Job).trigger_next_time == T0 + 70_000


def test_a_next_time_computed_by_the_wrong_clock_is_recomputed(node: Node) -> None:
    node.go(1)
    node.go(20, jump_ms=JUMP)
    started_now = make_due_job(node.wall_ms + 70_000, conf="70")
    delayed = make_due_job(node.wall_ms + 60_000, "FIX_DELAY", "60")
    waiting = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "60")
    make_fire(waiting, state="ACCEPTED")
    node.go(1, jump_ms=-JUMP)
    at_ms = node.wall_ms - 1_000
    next_times = {job.id: job.trigger_next_time for job in all_rows(Job)}
    assert next_times == {
        started_now.id: at_ms + 70_000,
        delayed.id: at_ms + 60_000,
        waiting.id: AFTER_THE_CURRENT_RUN,
    }


def test_future_probes_leases_and_manual_runs_are_brought_back(node: Node) -> None:
    node.go(1)
    node.go(1, jump_ms=JUMP)
    ahead_ms = node.wall_ms
    job = make_job()
    make_run(job, state="ACCEPTED", accepted_ms=ahead_ms, deadline_ms=ahead_ms + 10_000)
    make_run(job, state="UNKNOWN", lease_until=ahead_ms, deadline_ms=ahead_ms + 5_000)
    make_run(job, state="SENDING", lease_until=ahead_ms + 7_000)
    make_fire(job, trigger_type="MANUAL", due_time=ahead_ms)
    make_fire(job, trigger_type="RETRY", due_time=ahead_ms + HOUR)
    node.scheduler.tick_scan(node.wall_ms)
    node.wall_ms -= JUMP
    node.scheduler.tick_scan(node.wall_ms)
    accepted, unknown, sending, manual, retry = all_rows(Fire)
    at_ms = node.wall_ms
    assert (accepted.accepted_ms, accepted.deadline_ms) == (at_ms, at_ms)
    assert (unknown.lease_until, unknown.deadline_ms) == (at_ms, at_ms)
    assert sending.lease_until == at_ms
    assert manual.due_time == at_ms
    assert retry.due_time == ahead_ms + HOUR, "the interval may be long"


def test_start_up_corrects_what_a_wrong_clock_left_and_nothing_else(node: Node) -> None:
    left = make_due_job(T0 + JUMP, conf="60")
    right = make_due_job(T0 + 60_000, conf="60", last_fire_ms=T0)
    daily = make_due_job(T0 + HOUR, "CRON", "5 4 4 * * ?", time_zone="UTC")
    node.go(1)
    assert {job.id: job.trigger_next_time for job in all_rows(Job)} == {
        left.id: T0 + 60_000,
        right.id: T0 + 60_000,
        daily.id: T0 + HOUR,
    }


def test_an_invalid_schedule_stops_nothing(node: Node) -> None:
    make_due_job(T0 + HOUR, "CRON", "no cron")
    fixed = make_due_job(T0 + JUMP, conf="60")
    node.go(1)
    assert only_row(Job, id=fixed.id).trigger_next_time == T0 + 60_000


def test_a_fire_that_is_not_due_is_not_claimed(database: str) -> None:
    """It was due by a clock that has been set back since."""
    fire = make_fire(make_job(), due_time=T0 + 1)
    assert claim_fires(now_ms=T0).claims == []
    assert only_row(Fire).state == "PENDING"
    assert [claimed.fire_id for claimed in claim_fires(now_ms=T0 + 1).claims] == [fire.id]


def test_the_start_and_end_of_a_hold_are_reported(node: Node) -> None:
    watch = ClockWatch(node.guard, lambda: node.monotonic_ms)
    assert watch.news() is None
    node.wall_ms += JUMP
    assert watch.news() == ClockNews(right=False, skew_ms=JUMP, is_compared=False)
    reported = []
    for _ in range((HOLD_MS + STEADY_MS) // 1_000 + 1):
        node.wall_ms += 1_000
        node.monotonic_ms += 1_000
        reported.append(watch.news())
    assert [news for news in reported if news] == [ClockNews(right=True, skew_ms=0, is_compared=False)]


@pytest.mark.parametrize(("seen", "next_ms"), [(False, HOUR), (True, 55_000)])
def test_start_up_leaves_crons_alone_that_no_wrong_clock_has_touched(
    database: str, seen: bool, next_ms: Millis
) -> None:
    make_due_job(T0 + HOUR, "CRON", "0 * * * * ?")
    bring_back(zone="UTC", now_ms=T0, has_seen_return=seen)
    assert only_row(Job).trigger_next_time == T0 + next_ms


def test_an_instant_that_was_only_prepared_counts_as_not_started(database: str) -> None:
    job = make_due_job(T0 + HOUR + 60_000, conf="60", last_fire_ms=T0 + HOUR)
    make_run(job, log={"fire_time": T0 + HOUR}, due_time=T0 + HOUR, state="PENDING", epoch=0)
    save(
        Skip(
            job_id=job.id, from_ms=T0, to_ms=T0 + HOUR - 60_000, skipped=60, reason="misfire", recorded_ms=T0
        )
    )
    bring_back(zone="UTC", now_ms=T0, has_seen_return=True)
    assert all_rows(Fire) == all_rows(JobLog) == []
    assert only_row(Job).trigger_next_time <= T0 + 60_000


def test_a_stopped_job_is_not_delayed_by_instants_still_to_come(database: str) -> None:
    make_due_job(0, conf="5", trigger_status=0, last_fire_ms=T0 + 24 * HOUR)
    bring_back(zone="UTC", now_ms=T0, has_seen_return=False)
    assert (only_row(Job).trigger_next_time, only_row(Job).last_fire_ms) == (0, T0)


def test_a_skip_of_more_instants_than_are_counted_is_cut_too(database: str) -> None:
    """A clock that was ahead at the end of a long outage skips the future as well."""
    from_ms = T0 - (SKIPPED_MAX + 100) * 1_000
    job = make_due_job(T0 + HOUR + 1_000, "CRON", "* * * * * ?", last_fire_ms=T0 + HOUR)
    columns = {"skipped": SKIPPED_MAX, "reason": "misfire", "recorded_ms": T0}
    save(Skip(job_id=job.id, from_ms=from_ms, to_ms=T0 + HOUR, **columns))
    bring_back(zone="UTC", now_ms=T0, has_seen_return=True)
    skip = only_row(Skip)
    assert (skip.from_ms, skip.to_ms, skip.skipped) == (from_ms, T0, SKIPPED_MAX)
    assert only_row(Job).trigger_next_time == T0 + 1_000


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_a_server_whose_clock_was_ahead_too_leaves_no_job_silent(
    node: Node, config: Config, monkeypatch: pytest.MonkeyPatch, restarted: bool, shared: bool
) -> None:
    """Beside a Java admin, whose plans cannot be seen, nothing is changed."""
    nodes = [node]
    monkeypatch.setattr(clock_guard, "database_now_ms", lambda _session: nodes[-1].wall_ms)
    hourly = make_due_job(T0 + 120_000, "CRON", "5 6 * * * ?", time_zone="UTC")  # T0 is 03:04:05
    node.go(1)
    node.go(1, jump_ms=8 * HOUR)
    assert only_row(Job).trigger_next_time == T0 + 8 * HOUR + 120_000
    node.wall_ms -= 8 * HOUR
    if restarted:
        nodes.append(Node(config))
        nodes[-1].wall_ms = node.wall_ms
    nodes[-1].scheduler._config = replace(config, shared_with_java=shared)
    nodes[-1].go(130)
    assert started(hourly) == ([] if shared else [120])
    assert all_rows(Skip) == [] or shared


def test_what_a_node_with_a_clock_slightly_ahead_has_written_is_kept(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A start must not disturb the other nodes."""
    ahead_ms = T0 + PRE_READ_MS + 2 * SKEW_MAX_MS
    ended = make_due_job(0, "AT", "2024-05-01 03:04:12", trigger_status=0, last_fire_ms=ahead_ms)
    rate = make_due_job(ahead_ms + 60_000, conf="60", last_fire_ms=ahead_ms)
    for job in (ended, rate):
        make_fire(job, due_time=ahead_ms)
    make_run(rate, accepted_ms=T0 + 2 * SKEW_MAX_MS, due_time=T0)
    before = {job.id: (job.trigger_next_time, job.last_fire_ms) for job in all_rows(Job)}
    bring_back(zone="UTC", now_ms=T0, has_seen_return=False)
    assert [fire.due_time for fire in all_rows(Fire)] == [ahead_ms, ahead_ms, T0]
    assert caplog.text == ""
    assert {job.id: (job.trigger_next_time, job.last_fire_ms) for job in all_rows(Job)} == before


def test_the_last_instant_of_a_schedule_stays(database: str) -> None:
    """The scan stops the job when it reads that instant ahead."""
    at_ms = T0 + HOUR
    ended = make_due_job(0, "AT", "2024-05-01 04:04:05", trigger_status=0, last_fire_ms=at_ms)
    make_fire(ended, due_time=at_ms)
    bring_back(zone="UTC", now_ms=T0, has_seen_return=True)
    assert only_row(Fire).due_time == at_ms
    assert (only_row(Job).trigger_status, only_row(Job).last_fire_ms) == (0, at_ms)


def test_an_instant_that_was_claimed_meanwhile_is_not_planned_again(database: str) -> None:
    at_ms = T0 + HOUR
    job = make_due_job(at_ms + 60_000, conf="60", last_fire_ms=at_ms)
    make_fire(job, due_time=at_ms)
    with read_scope() as session:
        page = clock_return._recalculate_all(session, "UTC", T0, has_seen_return=True)
    assert [result.next_ms for result in page] == [T0 + 60_000]
    with session_scope() as session:
        session.get_one(Fire, only_row(Fire).id).state = FireState.SENDING
    transact(lambda session: clock_return._write(session, page))
    assert only_row(Job).trigger_next_time == at_ms + 60_000
    assert only_row(Fire).due_time == at_ms
