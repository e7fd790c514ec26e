"""Liveness of the children: what the supervisor notifies, and when a loop counts as hanging."""

import logging
import sys
import threading
import time

import pytest

from app.clock import Millis
from tests.support.eventually import eventually
from tests.support.fake_systemd import FakeSystemd
from workers.liveness import CHECK_S, FRESH_S, PATIENCE_S, Liveness, Pulse
from workers.loop import ROUND_MAX_S, Loop


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_ready_once_every_child_is_and_alive_while_every_child_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pulses = {"scheduler": Pulse(), "monitor": Pulse()}
    with FakeSystemd(watchdog_s=40) as systemd:
        for name, text in systemd.environ.items():
            monkeypatch.setenv(name, text)
        liveness, started = Liveness(pulses), time.monotonic()
        pulses["scheduler"].mark_ready()
        liveness.report(started)
        pulses["monitor"].mark_ready()
        for _ in range(2):
            liveness.report(started)
        eventually(lambda: systemd.states == ["READY=1"], 5)
        liveness.report(started + 11)
        liveness.report(started + 12)
        liveness.report(started + FRESH_S + 1)  # no child has reported since the start
    assert systemd.states == ["READY=1", "WATCHDOG=1"]


def test_a_child_that_hangs_is_logged_once_without_a_watchdog_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    liveness, now = Liveness({"scheduler": Pulse()}), time.monotonic()
    liveness.report(now)
    assert caplog.messages == []
    hangs = ["child hangs or is being restarted name=scheduler"]
    for later in (1, 2):
        liveness.report(now + FRESH_S + later)
        assert caplog.messages == hangs
    liveness.report(now)
    assert caplog.messages == [*hangs, "child works again name=scheduler"]


def test_a_child_reports_as_long_as_its_loops_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.liveness.CHECK_S", CHECK_S / 100)
    pulse, stop, answers = Pulse(), threading.Event(), iter([True, True, False])
    later = time.monotonic() + FRESH_S

    def is_alive(_now: float) -> bool:
        answer = next(answers, None)
        if answer is None:
            stop.set()
        return bool(answer)

    pulse.follow(is_alive, stop)
    assert pulse.is_fresh(later)
    assert not pulse.is_fresh(later + FRESH_S)


def test_a_child_is_lost_once_it_has_been_hanging_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    liveness, started = Liveness({"scheduler": Pulse()}), time.monotonic()
    hangs_at = started + FRESH_S + 1
    liveness.report(hangs_at)
    for at, started_at, expected in (
        (hangs_at + PATIENCE_S - 1, started, False),
        (hangs_at + PATIENCE_S + 1, started, True),
        (hangs_at + PATIENCE_S + 1, hangs_at, False),  # it has just been restarted
    ):
        assert liveness.is_lost("scheduler", at, started_at=started_at) is expected
    liveness.report(started)
    assert not liveness.is_lost("scheduler", hangs_at + PATIENCE_S, started_at=started)


def test_a_start_may_take_as_long_as_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.liveness.CHECK_S", 0.001)
    pulse, started = Pulse(), time.monotonic()
    liveness = Liveness({"scheduler": pulse}, start_max_s=ROUND_MAX_S)
    hangs_at = started + FRESH_S + 1
    liveness.report(hangs_at)
    for after_s, expected in ((PATIENCE_S + FRESH_S + 1, False), (PATIENCE_S + ROUND_MAX_S, True)):
        assert liveness.is_lost("scheduler", started + after_s, started_at=started) is expected
    stop = threading.Event()
    pulse.follow(lambda _now: stop.set() or True, stop)
    assert liveness.is_lost("scheduler", hangs_at + PATIENCE_S, started_at=started)
    pulse.reset()
    assert not liveness.is_lost("scheduler", hangs_at + PATIENCE_S, started_at=started)


@pytest.mark.parametrize("takes_long", [False, True])
def test_a_round_that_takes_too_long_hangs_unless_it_may(
    caplog: pytest.LogCaptureFixture, takes_long: bool
) -> None:
    inside, release = threading.Event(), threading.Event()

    def tick(_at_ms: Millis) -> Millis:
        inside.set()
        release.wait(10)
        return 60_000

    loop = Loop("test", tick, max_s=None if takes_long else ROUND_MAX_S)
    assert not loop.is_alive(time.monotonic()), "it has not been started"
    loop.start()
    assert inside.wait(10)
    now = time.monotonic()
    assert loop.is_alive(now + ROUND_MAX_S - 1)
    with caplog.at_level(logging.ERROR):
        for second in range(1, 60):
            assert loop.is_alive(now + ROUND_MAX_S + second) is takes_long
    assert caplog.text.count("loop stuck name=test") == (0 if takes_long else 1)
    assert loop.is_alive(now + ROUND_MAX_S + 61) is takes_long
    assert caplog.text.count("loop stuck name=test") == (0 if takes_long else 2)
    release.set()
    eventually(lambda: loop.is_alive(now + 10 * ROUND_MAX_S), 10, "it waits for the next round")
    loop.stop()
    assert not loop.is_alive(now)
