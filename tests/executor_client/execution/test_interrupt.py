"""Interruptible call: exceptions arrive inside the function only. Watchdog: deadlines expire in order."""

import itertools
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from executor_client.execution.interrupt import InterruptibleCall
from executor_client.execution.watchdog import Watchdog
from executor_client.wire.errors import JobKilled
from tests.support.eventually import eventually


def test_a_call_returns_value_or_error() -> None:
    assert InterruptibleCall(lambda: 5).run() == (5, None)
    value, error = InterruptibleCall(lambda: 1 // 0).run()
    assert value is None
    assert isinstance(error, ZeroDivisionError)


def test_an_interruption_ends_a_busy_loop() -> None:
    started = threading.Event()
    outcome: list[Any] = []

    def busy() -> None:
        started.set()
        while True:
            pass

    call = InterruptibleCall(busy)
    thread = threading.Thread(target=lambda: outcome.extend(call.run()))
    thread.start()
    started.wait(5)
    assert call.interrupt(JobKilled)
    thread.join(5)
    assert isinstance(outcome[1], JobKilled)
    assert not call.interrupt(JobKilled), "it has ended"


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("many_switches")
def test_an_interruption_never_escapes_the_call() -> None:
    """Interrupt calls of various lengths at most once until 100 were interrupted and 100 were not."""
    stop = threading.Event()
    escaped: list[BaseException] = []
    counts = {"interrupted": 0, "whole": 0}
    current: list[InterruptibleCall] = [InterruptibleCall(lambda: None)]

    def interrupt() -> None:
        done = None
        while not stop.is_set():
            call = current[0]
            if call is not done and call.interrupt(JobKilled):
                done = call

    def call_often() -> None:
        numbers = itertools.count()
        try:
            while min(counts.values()) < 100 and not stop.is_set():
                current[0] = call = InterruptibleCall(lambda: sum(range(next(numbers) % 3_000)))
                counts["interrupted" if call.run()[1] else "whole"] += 1
        except BaseException as exc:
            escaped.append(exc)

    threads = [threading.Thread(target=interrupt), threading.Thread(target=call_often)]
    for thread in threads:
        thread.start()
    threads[1].join(30)
    stop.set()
    for thread in threads:
        thread.join()
    assert escaped == []
    assert min(counts.values()) >= 100, counts


def test_deadlines_expire_in_order_unless_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    watchdog, expired = Watchdog(), []
    watchdog.after(0.05, lambda: expired.append("second"))
    watchdog.after(0.02, lambda: expired.append("first"))
    watchdog.after(0.03, lambda: expired.append("cancelled")).cancel()
    watchdog.after(0.04, lambda: expired.append(str(1 // 0)))
    watchdog.after(1e12, lambda: expired.append("never"))
    watchdog.start()
    eventually(lambda: len(expired) == 2)
    watchdog.stop()
    assert expired == ["first", "second"]
    assert "watchdog action failed" in caplog.text
