"""run_loop: an error costs one round; a stop ends a wait at once."""

import threading
import time

import pytest
from sqlalchemy.exc import OperationalError

from app.clock import Millis
from app.settings.config import Config
from tests.support.eventually import eventually
from workers import loop as loop_module
from workers.loop import Loop, run_loop


def test_each_round_gets_the_time_and_returns_the_wait() -> None:
    stop, seen = threading.Event(), []
    times = iter([10, 20, 30])

    def tick(now_ms: Millis) -> Millis:
        seen.append(now_ms)
        if now_ms == 30:
            stop.set()
        return 0

    run_loop("test", tick, stop, clock=lambda: next(times))
    assert seen == [10, 20, 30]


@pytest.mark.parametrize(
    ("error", "expected_log", "traceback"),
    [
        (ValueError("broken"), "loop round failed name=test", True),
        (
            OperationalError("SELECT", {}, Exception("server gone\nand more")),
            "database_error=server gone",
            False,
        ),
    ],
)
def test_an_error_costs_one_round(
    error: Exception,
    expected_log: str,
    traceback: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "ERROR_WAIT_MS", 1)
    stop, rounds = threading.Event(), []

    def tick(now_ms: Millis) -> Millis:
        rounds.append(now_ms)
        if len(rounds) < 3:
            raise error
        stop.set()
        return 0

    run_loop("test", tick, stop)
    assert len(rounds) == 3
    records = [record for record in caplog.records if expected_log in record.getMessage()]
    assert len(records) == 2
    assert all(bool(record.exc_info) is traceback for record in records)
    assert "and more" not in caplog.text


def test_a_stopped_loop_makes_no_round() -> None:
    stop = threading.Event()
    stop.set()
    run_loop("test", lambda _: pytest.fail("a round"), stop)


def test_a_negative_wait_counts_as_zero() -> None:
    stop, rounds = threading.Event(), []

    def tick(now_ms: Millis) -> Millis:
        rounds.append(now_ms)
        if len(rounds) == 5:
            stop.set()
        return -10_000

    run_loop("test", tick, stop)
    assert len(rounds) == 5


def test_a_stop_ends_a_long_wait_at_once() -> None:
    began = threading.Event()

    def tick(_now_ms: Millis) -> Millis:
        began.set()
        return 3_600_000

    loop = Loop("test", tick)
    loop.start()
    assert began.wait(5)
    started = time.monotonic()
    loop.stop()
    assert time.monotonic() - started < 2


def test_a_hanging_round_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    release, began = threading.Event(), threading.Event()

    def tick(_now_ms: Millis) -> Millis:
        began.set()
        release.wait(10)
        return 0

    loop = Loop("slow", tick)
    loop.start()
    began.wait(5)
    loop.stop(timeout_s=0.01)
    assert "loop did not end in time name=slow" in caplog.text
    release.set()
    eventually(lambda: "slow" not in [thread.name for thread in threading.enumerate()])


def test_a_round_may_wait_for_several_answers_of_a_slow_database() -> None:
    for answer_s, limit_s in ((5, 300.0), (30, 300.0), (600, 2_400.0)):
        assert loop_module.round_max_s(Config(database_answer_s=answer_s)) == limit_s
