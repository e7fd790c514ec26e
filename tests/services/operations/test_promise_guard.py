"""Guard of promises by a console: what workers leave undone, and requests to a service outside."""

import json
from dataclasses import replace

import pytest

from app.clock import MINUTE_MS, Millis
from app.domain.promises.promise import promise_of
from app.models.node import Node
from app.models.promise import Incident, IncidentMessage, JobPromise, PromiseCheck
from app.services.operations.promise_guard import BEHIND_MS, RECENT_MS, PromiseGuard
from app.services.promises.watch import PromiseWatch
from app.settings.config import Config
from tests.support.alarms import job_with_channels
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, save
from tests.support.fake_executor import FakeExecutor

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.usefixtures("database")]


class Clock:
    """Clock of a test, and whether it counts as right."""

    def __init__(self) -> None:
        self.now_ms: Millis = T0
        self.is_right = True

    def __call__(self) -> Millis:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(config: Config, clock: Clock, hook: FakeExecutor) -> PromiseGuard:
    guarded = replace(config, heartbeat_url=f"{hook.address}beat/")
    return PromiseGuard(guarded, lambda: clock.is_right, clock=clock)


def due_check(hook: FakeExecutor, due_ms: Millis) -> None:
    """A job without a success, of which a check is due."""
    promise = {"kind": "succeeds_every", "s": 60}
    job = job_with_channels(hook, schedule_type="NONE", promises=json.dumps([promise]))
    times = {"since_ms": due_ms - MINUTE_MS, "planned_until_ms": due_ms}
    save(
        JobPromise(
            job_id=job.id, number=1, kind="succeeds_every", definition=promise_of(promise).definition, **times
        )
    )
    save(PromiseCheck(job_id=job.id, number=1, logical_ms=0, until_ms=0, due_ms=due_ms))


def tick(guard: PromiseGuard, clock: Clock, at_ms: Millis) -> None:
    clock.now_ms = at_ms
    guard.tick(at_ms)


def test_a_console_evaluates_and_reports_what_workers_leave_undone(
    guard: PromiseGuard, clock: Clock, hook: FakeExecutor
) -> None:
    workers = {"name": "one", "kind": "workers", "version": "1", "started_ms": T0}
    save(Node(**workers, heartbeat_ms=T0 + 60_000))
    due_check(hook, T0)
    tick(guard, clock, T0 + 3_000)
    assert all_rows(Incident) == []
    tick(guard, clock, T0 + 2_000 + BEHIND_MS)
    assert len(all_rows(Incident)) == 1
    later_ms = T0 + 3_000 + 2 * BEHIND_MS
    eventually(lambda: (tick(guard, clock, later_ms), all_rows(IncidentMessage)[0].state == "SENT")[1])
    assert len(hook.requests) == 1


def test_a_console_does_not_wait_for_workers_that_are_dead(
    guard: PromiseGuard, clock: Clock, hook: FakeExecutor
) -> None:
    workers = {"name": "one", "kind": "workers", "version": "1", "started_ms": T0}
    save(Node(**workers, heartbeat_ms=T0 - BEHIND_MS))
    due_check(hook, T0)
    eventually(lambda: (tick(guard, clock, T0 + 3_000), len(hook.requests) == 1)[1])


def test_a_console_leaves_to_workers_what_they_do(
    guard: PromiseGuard, clock: Clock, hook: FakeExecutor
) -> None:
    workers_node = {"name": "one", "kind": "workers", "version": "1", "started_ms": T0}
    save(Node(**workers_node, heartbeat_ms=T0 + 60_000))
    due_check(hook, T0)
    watch = PromiseWatch(node="workers", clock=clock)
    for second in range(1, 5):
        clock.now_ms = T0 + second * 1_000
        watch.tick(clock.now_ms)
        guard.tick(clock.now_ms)
    assert len(all_rows(Incident)) == 1
    assert [message.state for message in all_rows(IncidentMessage)] == ["PENDING"]


def test_a_console_whose_clock_is_wrong_does_not_evaluate(
    guard: PromiseGuard, clock: Clock, hook: FakeExecutor
) -> None:
    due_check(hook, T0)
    clock.is_right = False
    tick(guard, clock, T0 + MINUTE_MS)
    assert all_rows(Incident) == []
    assert guard.find_problem(T0 + MINUTE_MS) == "this console has not evaluated promises for 10 s"


def test_the_service_outside_hears_whether_promises_are_watched(
    guard: PromiseGuard, clock: Clock, hook: FakeExecutor
) -> None:
    node = {"name": "one", "kind": "workers", "version": "1", "started_ms": T0, "heartbeat_ms": T0}
    save(Node(**node, scanned_ms=T0))
    tick(guard, clock, T0)
    guard.beat(T0 + 1_000)
    tick(guard, clock, T0 + 2 * RECENT_MS)
    guard.beat(T0 + 2 * RECENT_MS)
    guard.beat(T0 + 4 * RECENT_MS)
    assert [request.target for request in hook.requests] == ["/beat", "/beat/fail", "/beat/fail"]
    assert hook.requests[0].body == b""
    assert hook.requests[1].body == b"no scheduler has scanned for 20 s"
    assert hook.requests[2].body == b"this console has not evaluated promises for 10 s"


def test_a_service_that_does_not_answer_stops_nothing(
    guard: PromiseGuard, clock: Clock, hook: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    guard._config = replace(guard._config, heartbeat_url="http://127.0.0.1:1/secret-word")
    tick(guard, clock, T0)
    guard.beat(T0)
    assert "heartbeat not sent error=ConnectionError" in caplog.text
    assert "secret-word" not in caplog.text
