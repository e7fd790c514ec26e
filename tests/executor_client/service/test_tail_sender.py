"""Tails of logs, which a stop sends to consoles that take them."""

import threading
import time
from collections.abc import Callable

import pytest

from executor_client import Executor, ExecutorConfig, HandlerRegistry, context
from executor_client.service.tail_sender import TAILS_S
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.executor_client import Caller

MakeConfig = Callable[..., ExecutorConfig]

LINES = 5_000


@pytest.fixture
def started(handlers: HandlerRegistry) -> threading.Event:
    """Set by a run that has written its log and ends with a stop only."""
    started, never = threading.Event(), threading.Event()

    @handlers.job("waits")
    def wait() -> None:
        for number in range(LINES):
            context.log(f"line {number} {'x' * 100}")
        started.set()
        while True:
            never.wait(0.01)

    return started


def stop_during_run(config: ExecutorConfig, handlers: HandlerRegistry, started: threading.Event) -> float:
    """Start an executor, stop it during a run, and return how long the stop took."""
    with Executor(config, handlers) as executor:
        Caller(executor.address.rstrip("/")).accepted(1, executorHandler="waits")
        assert started.wait(10)
        begin_s = time.monotonic()
    return time.monotonic() - begin_s


def test_a_stop_sends_what_a_console_lacks_of_open_logs(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin, started: threading.Event
) -> None:
    admin.console = lambda action: "run-state,log-tail"
    admin.tails[1] = ["known"] * 10
    stop_during_run(config(), handlers, started)
    lines = admin.tails[1]
    assert len(lines) > LINES
    assert any(f"line {LINES - 1} " in line for line in lines)
    sizes = [len(str(body)) for body in admin.bodies("logTail")]
    assert len(sizes) >= 3
    assert max(sizes) < 512 * 1024


def test_other_admins_get_none(
    config: MakeConfig, handlers: HandlerRegistry, admin: StandInAdmin, started: threading.Event
) -> None:
    stop_during_run(config(), handlers, started)
    assert not admin.bodies("logTail")


def test_a_console_that_hangs_does_not_hold_the_stop_up(
    config: MakeConfig,
    handlers: HandlerRegistry,
    admin: StandInAdmin,
    started: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin.console = lambda action: "run-state,log-tail"
    released = threading.Event()
    store = admin.store_tail

    def hang(body: object) -> dict[str, object]:
        released.wait(30)
        return store(body)

    monkeypatch.setattr(admin, "store_tail", hang)
    try:
        assert stop_during_run(config(), handlers, started) < TAILS_S + 4
    finally:
        released.set()
