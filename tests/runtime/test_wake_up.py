"""Wake-up signals: datagrams that may be lost, and never block or fail their sender."""

import logging
import os
import select
import socket
from pathlib import Path

import pytest

from app.runtime.wake_up import FOLDER, WakeSocket, send_wake_up
from app.settings.config import Config
from tests.pipeline.steps import call_back
from tests.support.factories import T0, make_job, make_run

pytestmark = pytest.mark.databases("sqlite")


def is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_every_listener_of_the_home_gets_a_signal_until_it_is_drained(tmp_path: Path) -> None:
    listeners = [WakeSocket(tmp_path, name) for name in ("one", "of/odd name")]
    descriptors = [listener.open() for listener in listeners]
    assert [is_readable(descriptor) for descriptor in descriptors if descriptor is not None] == [False, False]
    send_wake_up(tmp_path)
    for listener, descriptor in zip(listeners, descriptors, strict=True):
        assert descriptor is not None
        assert is_readable(descriptor)
        listener.drain()
        assert not is_readable(descriptor)
    for listener in listeners:
        listener.close()
    send_wake_up(tmp_path)  # the remaining files have no listener


def test_the_socket_of_a_node_that_ended_a_day_ago_is_removed(tmp_path: Path) -> None:
    for name in ("old", "new", "alive"):
        listener = WakeSocket(tmp_path, name)
        listener.open()
        if name != "alive":
            listener.close()
        if name != "new":
            os.utime(tmp_path / FOLDER / f"{name}.sock", (0, 0))
    send_wake_up(tmp_path)
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["alive.sock", "new.sock"]
    listener.close()


def test_sending_without_listeners_does_nothing(tmp_path: Path) -> None:
    send_wake_up(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FOLDER).mkdir()
    stale = tmp_path / FOLDER / "killed.sock"
    stale.touch()
    send_wake_up(tmp_path)
    assert stale.read_bytes() == b""


def test_a_full_socket_does_not_block_the_sender(tmp_path: Path) -> None:
    listener = WakeSocket(tmp_path, "one")
    descriptor = listener.open()
    for _ in range(2_000):
        send_wake_up(tmp_path)
    assert descriptor is not None
    with socket.socket(fileno=os.dup(descriptor)) as receiver:
        received = sum(1 for _ in iter(lambda: is_readable(descriptor) and receiver.recv(1), False))
    assert 0 < received < 2_000
    listener.close()


def test_a_restarted_node_replaces_its_stale_socket(tmp_path: Path) -> None:
    killed = WakeSocket(tmp_path, "one")
    killed.open()
    restarted = WakeSocket(tmp_path, "one")
    descriptor = restarted.open()
    send_wake_up(tmp_path)
    assert descriptor is not None
    assert is_readable(descriptor)
    restarted.close()
    killed.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="reached through /proc, on Linux")
def test_a_home_path_longer_than_a_socket_address_gets_its_signals(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 20) / ("er" * 40)
    listener = WakeSocket(home, "one")
    descriptor = listener.open()
    send_wake_up(home)
    assert descriptor is not None
    assert is_readable(descriptor)
    listener.close()


def test_a_node_name_too_long_for_a_socket_falls_back_to_the_poll(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert WakeSocket(tmp_path, "n" * 120).open() is None
    assert "wake-up socket not opened" in caplog.text
    send_wake_up(tmp_path)


@pytest.mark.parametrize(
    ("code", "retry_interval_s", "wakes"), [(200, 0, True), (500, 0, False), (500, 60, False)]
)
def test_only_due_successors_wake_the_dispatchers(
    database: str, config: Config, code: int, retry_interval_s: int, wakes: bool
) -> None:
    retries = {"executor_fail_retry_count": 1, "retry_interval_s": retry_interval_s}
    run = make_run(make_job(child_jobid="7", **retries), log={"executor_fail_retry_count": 1})
    listener = WakeSocket(config.home, "one")
    descriptor = listener.open()
    assert call_back(run.id, code, now_ms=T0)
    found = descriptor is not None and is_readable(descriptor)
    listener.close()
    assert found is wakes
