"""Monitor: what it does on a node with a wrong clock."""

import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from app.clock import Millis, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Actor
from app.domain.enums import Role
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.group import Group
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.node import Node
from app.models.registry import Registration
from app.models.tag import JobTag
from app.models.task import Task, TaskLine
from app.models.user import User
from app.pipeline import registration
from app.pipeline.clocks import guard as clock_guard
from app.pipeline.clocks.guard import PERIOD_MS, ClockGuard, ClockWatch
from app.services.jobs import bulk
from app.services.jobs.bulk import BulkAction, BulkParams
from app.services.report.reporting import Cleaner
from app.services.tasks.tasks import submit_task
from app.settings.config import Config
from tests.acceptance.programs import ROOT, Programs
from tests.pipeline.steps import call_back
from tests.support.eventually import eventually
from tests.support.factories import (
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_group,
    make_job,
    make_log,
    make_run,
    only_row,
    save,
)
from tests.support.fake_executor import FakeExecutor
from tests.support.plan import every_database
from workers.loop import Tick
from workers.monitor import CLOCK_WAIT_MS, LEASE_PERIOD_MS, Monitor, RegistryRound, skip_if_clock_off

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DAY: Millis = 86_400_000
HOUR: Millis = 3_600_000


class Clocks:
    """Clocks of this node, wall and monotonic; the database's clock shows T0."""

    def __init__(self) -> None:
        self.wall_ms, self.monotonic_ms = T0, 0

    def guard(self) -> ClockGuard:
        return ClockGuard(lambda: self.wall_ms, lambda: self.monotonic_ms)


@pytest.fixture
def clocks(database: str, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    monkeypatch.setattr(clock_guard, "database_now_ms", lambda _session: T0)
    return Clocks()


def test_a_tick_pauses_while_the_clock_is_wrong(clocks: Clocks) -> None:
    seen: list[Millis] = []

    def tick(at_ms: Millis) -> Millis:
        seen.append(at_ms)
        return 77

    guarded = skip_if_clock_off(tick, clocks.guard())
    assert guarded(T0) == 77
    clocks.wall_ms += HOUR
    assert guarded(T0 + HOUR) == CLOCK_WAIT_MS, "a jump is noticed at once"
    clocks.wall_ms = T0
    assert guarded(T0 + 1) == 77
    assert seen == [T0, T0 + 1]


@pytest.mark.parametrize(
    ("tick_of", "ahead_ms"),
    [(lambda _config: RegistryRound().tick, HOUR), (lambda config: Cleaner(config).tick, 60 * DAY)],
    ids=["registry", "clean-up"],
)
def test_a_clock_that_is_ahead_expires_no_executor_and_deletes_no_run(
    clocks: Clocks, config: Config, tick_of: Callable[[Config], Tick], ahead_ms: Millis
) -> None:
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key="some-app",
            registry_value="http://127.0.0.1:1/",
            update_time=T0,
        )
    )
    make_log(make_job(), handle_code=200, handle_time=T0)
    clocks.wall_ms += ahead_ms
    skip_if_clock_off(tick_of(config), clocks.guard())(clocks.wall_ms)
    assert len(all_rows(Registration)) == 1
    assert len(all_rows(JobLog)) == 1


class Rounds:
    """A registry round every 30 s with a live console; one executor is silent from the start."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.rounds = RegistryRound(lambda: clocks.monotonic_ms)
        save(
            Registration(
                registry_group="EXECUTOR",
                registry_key="some-app",
                registry_value="http://127.0.0.1:1/",
                update_time=T0 - HOUR,
            )
        )
        save(Node(name="one", kind="console", epoch=1, started_ms=T0, heartbeat_ms=T0 + DAY, version="1"))

    def go(self, rounds: int, *, wall_ms: Millis = 30_000, monotonic_ms: Millis = 30_000) -> bool:
        """Run some rounds; return whether the executor is still registered."""
        for _ in range(rounds):
            self.clocks.wall_ms += wall_ms
            self.clocks.monotonic_ms += monotonic_ms
            self.rounds.tick(self.clocks.wall_ms)
        return bool(all_rows(Registration))


def test_silence_counts_only_after_every_executor_could_have_registered(
    clocks: Clocks, database: str
) -> None:
    steps = Rounds(clocks)
    assert steps.go(2), "30 s after the first round a live one may not have sent a heartbeat yet"
    assert not steps.go(1)


def test_an_executor_with_heartbeats_is_listed_from_the_first_round(clocks: Clocks, database: str) -> None:
    address, silent = "http://127.0.0.1:2/", "http://127.0.0.1:1/"
    group = make_group(app_name="some-app", address_type=0, address_list=silent)
    steps = Rounds(clocks)
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key="some-app",
            registry_value=address,
            update_time=T0 + 30_000,
        )
    )
    steps.go(1)
    assert only_row(Group, id=group.id).address_list == f"{silent},{address}"
    steps.go(2)
    assert only_row(Group, id=group.id).address_list == address


def test_an_absent_console_restarts_the_count(clocks: Clocks, database: str) -> None:
    steps = Rounds(clocks)
    steps.go(2)
    with session_scope() as session:
        session.execute(update(Node).values(heartbeat_ms=0))
    assert steps.go(10)
    with session_scope() as session:
        session.execute(update(Node).values(heartbeat_ms=T0 + DAY))
    assert steps.go(2)
    assert not steps.go(1)


@pytest.mark.parametrize(
    ("wall_ms", "monotonic_ms"),
    [(HOUR, 30_000), (HOUR, HOUR), (40_000, 40_000)],
    ids=["slept", "stood still", "came late"],
)
def test_a_late_round_restarts_the_count(
    clocks: Clocks, database: str, wall_ms: Millis, monotonic_ms: Millis
) -> None:
    steps = Rounds(clocks)
    steps.go(2)
    assert steps.go(1, wall_ms=wall_ms, monotonic_ms=monotonic_ms), (
        "no executor could send a heartbeat meanwhile"
    )
    assert steps.go(1)
    assert not steps.go(1)


def test_an_unavailable_database_restarts_the_count(
    clocks: Clocks, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise OSError("away")

    steps = Rounds(clocks)
    steps.go(2)
    with monkeypatch.context() as away:
        away.setattr(registration, "is_listening", fail)
        for _ in range(90):
            with pytest.raises(OSError, match="away"):
                steps.go(1, wall_ms=1_000, monotonic_ms=1_000)
    assert steps.go(2, wall_ms=1_000, monotonic_ms=1_000)
    assert steps.go(1)
    assert not steps.go(1)


def test_the_monitor_reports_a_wrong_clock_once(clocks: Clocks, config: Config, hook: FakeExecutor) -> None:
    url = f"{hook.address.replace('http', 'json', 1)}?cto=2&rto=2"
    made = Monitor(
        replace(config, alarm_urls=(url,), access_tokens=("a-token-of-some-length",), node_name="one")
    )
    made._clock = ClockWatch(clocks.guard(), lambda: clocks.monotonic_ms)
    made.tick_alarms(clocks.wall_ms)
    clocks.wall_ms += 5_000
    for _ in range(30):
        clocks.monotonic_ms += PERIOD_MS
        clocks.wall_ms += PERIOD_MS
        made.tick_alarms(clocks.wall_ms)
    eventually(lambda: made.tick_alarms(clocks.wall_ms) and hook.requests)
    (request,) = hook.requests
    assert request.json["title"] == "[Duetime] one: clock wrong, scheduling stopped"
    made._notifier.close()
    made._resolver.close()


def test_a_clock_that_is_ahead_ends_no_mute_and_failures_are_still_reported(
    clocks: Clocks, config: Config, hook: FakeExecutor
) -> None:
    group = make_group(alarm_urls=f"{hook.address.replace('http', 'json', 1)}?cto=2&rto=2")
    muted, other = make_job(job_group=group.id), make_job(job_group=group.id, job_desc="Nightly report")
    save(Mute(job_id=muted.id, group_id=0, since_ms=T0, until_ms=T0 + HOUR))
    for job in (muted, other):
        assert call_back(make_run(job).id, 500, "disk full")
    made = Monitor(replace(config, access_tokens=("a-token-of-some-length",), node_name="one"))
    made._clock = ClockWatch(clocks.guard(), lambda: clocks.monotonic_ms)
    clocks.wall_ms += 2 * HOUR
    eventually(
        lambda: (
            made.tick_alarms(clocks.wall_ms) and [row.state for row in all_rows(Alarm)] == ["MUTED", "SENT"]
        )
    )
    made.tick_alarms(clocks.wall_ms)
    assert only_row(Mute).attempts == 0
    titles = [
        request.json["title"] for request in hook.requests if "clock wrong" not in request.json["title"]
    ]
    assert titles == [f"[Duetime] Nightly report (job {other.id}): 1 run failed"]
    made._notifier.close()
    made._resolver.close()


def test_leases_that_expire_in_great_number_do_not_wait(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.pipeline.resolve.LEASE_ROWS", 2)
    job = make_job()
    for _number in range(3):
        make_fire(job, state="SENDING", lease_until=T0 - 1)
    made = Monitor(replace(config, access_tokens=("a-token-of-some-length",), node_name="one"))
    assert [made.tick_leases(T0) for _round in range(2)] == [0, LEASE_PERIOD_MS]
    assert [fire.state for fire in all_rows(Fire)] == ["UNKNOWN"] * 3
    made._notifier.close()
    made._resolver.close()


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_java_admin_that_goes_on_looks_after_its_runs_and_plans_itself(
    database: str, config: Config, is_shared: bool
) -> None:
    made = Monitor(
        replace(
            config, access_tokens=("a-token-of-some-length",), node_name="one", shared_with_java=is_shared
        )
    )
    names, own = {loop._name for loop in made._loops}, {"inherited", "zone-rules"}
    assert names & own == (set() if is_shared else own)
    made._notifier.close()
    made._resolver.close()


#: read by Python at its start: the host's clock, shifted by some milliseconds
FAST_CLOCK = """
import time
_read = time.time_ns
time.time_ns = lambda: _read() + 5_000_000_000
time.time = lambda: time.time_ns() / 1e9
"""


@every_database
def test_workers_on_a_host_with_a_wrong_clock_fire_nothing_and_report_it(
    database: str, database_kind: str, tmp_path: Path, hook: FakeExecutor
) -> None:
    if database_kind == "sqlite":
        pytest.skip("SQLite has no clock of its own")
    (tmp_path / "sitecustomize.py").write_text(FAST_CLOCK)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB_")}
    settings = {
        "XXL_JOB_HOME": str(tmp_path / "home"),
        "XXL_JOB_DATABASE_URL": database,
        "XXL_JOB_NODE_NAME": "one",
    }
    reported_to = {
        "XXL_JOB_ALARM_URLS": hook.address.replace("http", "json", 1),
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
    }
    make_due_job(now_ms() + 1_000, conf="1")
    programs = Programs(tmp_path)
    program = programs.start(
        "workers", (sys.executable, "-m", "workers"), {**kept, **settings, **reported_to}
    )
    try:
        eventually(lambda: hook.requests, 60, "a notice arrives")
        reported_ms = now_ms()
        eventually(lambda: now_ms() > reported_ms + 3_000)
        assert program.end() == 0
    finally:
        program.kill()
    (request,) = hook.requests
    assert request.json["title"] == "[Duetime] one: clock wrong, scheduling stopped"
    assert re.search(r"\b[45]\.\d s ahead of the database's", request.json["message"]), (
        "a busy machine compares 0.1 s late"
    )
    assert program.output.count("clock off, scheduling stopped") == 1, (
        "the scan reports it, and the monitors do not repeat it"
    )
    assert all_rows(Fire) == []


def test_the_monitor_does_background_tasks_and_stops_in_the_middle(
    config: Config, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.tasks.runner.PAUSE_S", 0.02)
    user = save(User(username="ann", password="x", role=int(Role.ADMIN), permission=""))
    actor = Actor(user_id=user.id, username="ann", is_admin=True, rights={})
    jobs = [make_job().id for _ in range(30)]
    with session_scope() as session:
        draft = bulk.draft_task(BulkParams(BulkAction.TAG, jobs, tag="blue"), form_key="k")
        submit_task(session, draft, actor=actor, now_ms=now_ms())
    config = replace(config, access_tokens=("a-token-of-some-length",), node_name="one")
    for is_reached in (lambda task: task.done >= 2, lambda task: task.state == "DONE"):
        monitor = Monitor(config)
        monitor.start()
        try:
            eventually(partial(lambda reached: reached(only_row(Task)), is_reached))
        finally:
            monitor.stop()
    assert sorted(row.job_id for row in all_rows(JobTag)) == jobs
    assert {row.outcome for row in all_rows(TaskLine)} == {"done"}
    assert len(all_rows(TaskLine)) == 30
