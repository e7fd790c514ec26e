"""Notifications to systemd (abstract sockets: Linux)."""

import os
import sys
import threading

import pytest

from app.runtime.systemd import BEATS, Watchdog, notify, watchdog_s
from tests.support.eventually import eventually
from tests.support.fake_systemd import FakeSystemd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")


def set_environ(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, text in environ.items():
        monkeypatch.setenv(name, text)


def test_a_state_is_sent_and_without_a_listener_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeSystemd() as systemd:
        set_environ(monkeypatch, systemd.environ)
        notify("READY=1")
        eventually(lambda: systemd.states == ["READY=1"], 5)
    notify("STOPPING=1")
    set_environ(monkeypatch, {})
    notify("READY=1")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"WATCHDOG_USEC": "8000000"}, 8 / BEATS),
        ({"WATCHDOG_USEC": "8000000", "WATCHDOG_PID": str(os.getpid())}, 8 / BEATS),
        ({"WATCHDOG_USEC": "8000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_interval_is_a_part_of_the_watchdogs(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], expected: float | None
) -> None:
    set_environ(monkeypatch, environ)
    assert watchdog_s() == expected


def test_the_watchdog_is_notified_only_while_the_check_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    checks, alive = iter([True, True, False, False]), threading.Event()

    def is_alive() -> bool:
        passes = next(checks, None)
        if passes is None:
            alive.set()
        return bool(passes)

    with FakeSystemd(watchdog_s=0.02) as systemd:
        set_environ(monkeypatch, systemd.environ)
        watchdog = Watchdog(is_alive)
        watchdog.start()
        assert alive.wait(10)
        watchdog.stop()
        eventually(lambda: systemd.states == ["WATCHDOG=1"] * 2, 5)


def test_without_a_watchdog_no_thread_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environ(monkeypatch, {})
    Watchdog(lambda: True).start()
    eventually(lambda: all(thread.name != "watchdog" for thread in threading.enumerate()), 5)
