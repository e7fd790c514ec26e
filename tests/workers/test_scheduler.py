"""Scheduler child in this process: scan, ring and dispatcher together, on time and never early."""

import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network

import pytest
from sqlalchemy import select

from app.clock import now_ms
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.late import LATE_MS
from app.settings.config import Config
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_due_job, make_fire, make_group, only_row
from tests.support.fake_executor import FakeExecutor
from workers import scheduler as scheduler_module
from workers.scheduler import (
    GC_THRESHOLDS,
    PREPARE_AHEAD_MS,
    PREPARE_EARLIEST_MS,
    PREPARE_PERIOD_MS,
    PREPARED_MIN,
    SCAN_PERIOD_MS,
    Scheduler,
)


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


@pytest.fixture
def node(config: Config) -> Config:
    return replace(
        config,
        executor_networks=(ip_network("127.0.0.0/8"),),
        access_tokens=("a-token-of-some-length",),
        node_name="one",
    )


def test_many_fires_are_prepared_and_a_stop_takes_them_back(
    database: str, node: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "PREPARE_AHEAD_MS", 5_000)
    scheduler = Scheduler(node)
    due_ms = now_ms() + 4_500
    group = make_group(address_list=executor.address)
    for _ in range(PREPARED_MIN):
        make_due_job(due_ms, update_time=due_ms - 60_000, job_group=group.id)
    scheduler.start()
    eventually(lambda: len(all_rows(JobLog)) == PREPARED_MIN)
    assert {(fire.state, fire.epoch) for fire in all_rows(Fire)} == {("PENDING", 0)}
    scheduler.stop()
    assert all_rows(Fire) == all_rows(JobLog) == executor.requests == []
    assert {job.trigger_next_time for job in all_rows(Job)} == {due_ms}


def test_jobs_are_sent_at_their_instant_and_never_before(
    database: str, node: Config, executor: FakeExecutor
) -> None:
    scheduler = Scheduler(node)
    scheduler.start()
    first_ms = now_ms() + 600
    job = make_due_job(first_ms, conf="1", addresses=executor.address)
    arrived: dict[int, int] = {}

    def all_there() -> bool:
        for request in executor.requests_for("run"):
            arrived.setdefault(request.json["logId"], now_ms())
        return len(arrived) >= 2

    eventually(all_there)
    scheduler.stop()
    logs = [log for log in all_rows(JobLog) if log.id in arrived]
    assert [log.fire_time for log in logs] == [first_ms, first_ms + 1000]
    for log in logs:
        assert 0 <= arrived[log.id] - (log.fire_time or 0) < 2_000
    after = only_row(Job)
    assert all_rows(Fire, state="PENDING") == [], "fires read ahead are returned"
    assert after.trigger_next_time == max(log.fire_time or 0 for log in all_rows(JobLog)) + 1000
    assert job.id == after.id


def test_a_restarted_node_sends_what_its_ring_lost(
    database: str, node: Config, executor: FakeExecutor
) -> None:
    make_due_job(now_ms() + 700, conf="3600", addresses=executor.address)
    before = Scheduler(node)
    before.tick_scan(now_ms())  # killed before the ring reached it
    assert only_row(Fire).state == "PENDING"
    after = Scheduler(node)
    after.start()
    eventually(lambda: len(executor.requests_for("run")) == 1)
    after.stop()
    log = only_row(JobLog)
    assert (log.trigger_code, log.fire_time) == (200, only_row(Fire).due_time)


def test_a_restarted_node_skips_fires_found_too_late(
    database: str, node: Config, executor: FakeExecutor
) -> None:
    job = make_due_job(now_ms() + 3_600_000, conf="3600", addresses=executor.address)
    late = make_fire(job, due_time=now_ms() - LATE_MS - 1_000, owner="one")
    scheduler = Scheduler(node)
    scheduler.start()
    eventually(lambda: [skip.from_ms for skip in all_rows(Skip)] == [late.due_time])
    scheduler.stop()
    assert (all_rows(Fire), executor.requests_for("run")) == ([], [])


def test_the_ring_of_a_process_that_was_stopped_offers_nothing_too_late(
    database: str, node: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, offered, forgotten = Scheduler(node), list[DueFire](), list[DueFire]()
    monkeypatch.setattr(scheduler._dispatcher, "offer", offered.extend)
    monkeypatch.setattr(scheduler._dispatcher, "forget_prepared", forgotten.extend)
    monkeypatch.setattr(scheduler._ring, "wait", lambda _now_ms: None)
    at_ms = now_ms()
    scheduler._ring.push(DueFire(late_ms, 0, at_ms - late_ms) for late_ms in (LATE_MS, LATE_MS - 1, 0))
    scheduler.tick_ring(at_ms)
    assert [fire.due_time for fire in offered] == [at_ms - LATE_MS + 1, at_ms]
    assert [fire.due_time for fire in forgotten] == [at_ms - LATE_MS]


def test_a_scan_returns_when_the_next_one_is_due(database: str, node: Config) -> None:
    wait_ms = Scheduler(node).tick_scan(now_ms())
    assert 0 < wait_ms <= SCAN_PERIOD_MS


@pytest.mark.parametrize(("needed_ms", "count"), [(0, 2), (700, 4), (9_999, 6)])
def test_many_fires_are_prepared_earlier(
    database: str, node: Config, monkeypatch: pytest.MonkeyPatch, needed_ms: int, count: int
) -> None:
    scheduler, offered, asked = Scheduler(node), list[DueFire](), list[int]()

    def preparing_ms(fires: int) -> int:
        asked.append(fires)
        return needed_ms - PREPARE_PERIOD_MS

    monkeypatch.setattr(scheduler._dispatcher, "preparing_ms", preparing_ms)
    monkeypatch.setattr(scheduler._dispatcher, "offer_ahead", offered.extend)
    at_ms = now_ms() + 2_000
    times = (1, PREPARE_AHEAD_MS, 351, 700, 701, PREPARE_EARLIEST_MS, 1_351)
    scheduler._ahead.push(DueFire(0, 0, at_ms + after_ms) for after_ms in times * PREPARED_MIN)
    scheduler.tick_ahead(at_ms)
    assert sorted({fire.due_time - at_ms for fire in offered}) == list(times[:count])
    assert asked == [6 * PREPARED_MIN]


def test_a_stop_of_an_idle_scheduler_is_quick(database: str, node: Config) -> None:
    switch = sys.getswitchinterval()
    scheduler = Scheduler(node)
    scheduler.start()
    started = time.monotonic()
    scheduler.stop()
    assert time.monotonic() - started < 3
    assert sys.getswitchinterval() == switch, "only a process of its own sets this"


def test_garbage_of_statements_does_not_accumulate() -> None:
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        before = len(gc.get_objects())
        for number in range(2_000):
            select(Fire.id).where(
                Fire.id.in_([number])
            )  # an IN list is part of a reference cycle of ten objects
        assert len(gc.get_objects()) - before < 8_000
    finally:
        gc.set_threshold(*thresholds)
