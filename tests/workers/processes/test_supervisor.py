"""``python -m workers`` as its own process: restarts of children, an orderly stop, one-line start errors."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from app.clock import now_ms
from app.commands import parts
from app.database.engine import bind_engine, unbind_engine
from app.models.fire import Fire
from app.models.node import NODE_DEAD_MS, Node
from app.settings.config import Config
from tests.acceptance.programs import Program, Programs
from tests.support.databases import migrate
from tests.support.eventually import eventually
from tests.support.factories import make_due_job, only_row
from tests.support.fake_executor import Answer, FakeExecutor
from workers.dispatch.dispatcher import STOP_MARGIN_S
from workers.processes.child import FORKED, PARTS
from workers.processes.supervisor import RESTART_MAX_S, STABLE_S, Supervisor, _Child, stop_timeout_s

WORKERS = ("-m", "workers")
ALL = len(PARTS)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB_")}
    return {
        **kept,
        "XXL_JOB_HOME": str(tmp_path / "home"),
        "XXL_JOB_DATABASE_URL": f"sqlite:///{tmp_path}/xxl_job.db",
    }


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    started = Programs(tmp_path)
    yield started
    for program in started.started:
        program.kill()


def children(program: Program) -> list[psutil.Process]:
    """Return the children once all are running and past their first lines."""
    eventually(lambda: program.output.count("scheduler started") >= 1 and len(program.workers()) == ALL, 60)
    return program.workers()


def test_a_killed_child_is_restarted_and_a_signal_ends_all_in_order(
    programs: Programs, environ: dict[str, str]
) -> None:
    migrate(environ["XXL_JOB_DATABASE_URL"])
    program = programs.fork("workers", WORKERS, environ)
    scheduler, _archiver, monitor = children(program)
    scheduler.kill()
    eventually(lambda: program.output.count("scheduler started") == 2, 60)
    assert "child died name=scheduler exit_code=-9 restart_in_s=0.2" in program.output
    assert monitor.is_running()
    eventually(lambda: len(program.workers()) == ALL, 30)
    monitor.kill()
    eventually(lambda: "child died name=monitor exit_code=-9 restart_in_s=0.2" in program.output, 30)
    eventually(lambda: len(program.workers()) == ALL, 30)
    assert program.end(signal.SIGTERM) == 0
    lines = program.output
    order = ["workers stopping", "scheduler stopped node=", "workers stopped"]
    assert sorted(order, key=lines.index) == order
    assert lines.rstrip().endswith("workers stopped")
    assert "Traceback" not in lines
    assert not program.children()


def test_children_end_with_a_killed_supervisor(programs: Programs, environ: dict[str, str]) -> None:
    migrate(environ["XXL_JOB_DATABASE_URL"])
    program = programs.fork("workers", WORKERS, environ)
    started = children(program)
    if FORKED:
        assert psutil.Process(program.pid).num_threads() == 1, "a fork copies one thread only"
    program.process.kill()
    eventually(lambda: not any(map(is_running, started)), 30)
    assert "scheduler stopped node=" in program.output, "an orderly end"


def is_running(process: psutil.Process) -> bool:
    """Whether a process runs; one that has ended and has no parent to wait for it does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def seen(environ: dict[str, str]) -> Iterator[None]:
    """The workers' database, also for this process."""
    migrate(environ["XXL_JOB_DATABASE_URL"])
    bind_engine(Config(database_url=environ["XXL_JOB_DATABASE_URL"]))
    yield
    unbind_engine()


@pytest.mark.usefixtures("seen")
def test_a_node_ends_only_after_its_last_send_is_answered(
    programs: Programs, environ: dict[str, str]
) -> None:
    release = threading.Event()
    with FakeExecutor() as executor:
        executor.respond("run", Answer(wait=release))
        program = programs.fork("workers", WORKERS, environ | {"XXL_JOB_TRIGGER_TIMEOUT": "5"})
        scheduler, _archiver, _monitor = children(program)
        make_due_job(now_ms() + 1_000, conf="3600", addresses=executor.address)
        eventually(lambda: executor.requests_for("run"), 30, "a run is being sent")
        program.process.send_signal(signal.SIGTERM)
        eventually(lambda: "workers stopping" in program.output, 30)
        stopped_ms = now_ms()
        # longer than a silent node counts as alive
        eventually(lambda: _beat_of_a_living_node() and now_ms() > stopped_ms + NODE_DEAD_MS + 500, 30)
        assert scheduler.is_running(), "it waits for the answer"
        assert only_row(Fire, state="SENDING")
        release.set()
        assert program.process.wait(30) == 0
    assert only_row(Node).heartbeat_ms == 0
    assert only_row(Fire).state == "ACCEPTED", program.output


def _beat_of_a_living_node() -> bool:
    node = only_row(Node)
    assert node.heartbeat_ms > now_ms() - NODE_DEAD_MS, "the node has ended"
    return True


@pytest.mark.parametrize("trigger_timeout_s", [1, 3, 10])
def test_a_stop_waits_for_the_slowest_answer_before_it_is_killed(trigger_timeout_s: int) -> None:
    config = Config(trigger_timeout_s=trigger_timeout_s)
    assert stop_timeout_s("scheduler", config) > trigger_timeout_s + STOP_MARGIN_S, "the dispatcher's wait"
    assert sum(stop_timeout_s(name, config) for name in PARTS) < parts.STOP_S


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({}, "there is no such file; for a new installation, run: "),
        (
            {"XXL_JOB_TRIGGER_TIMEOUT": "soon"},
            "XXL_JOB_TRIGGER_TIMEOUT='soon': expected a whole number from 1 to 10",
        ),
        (
            {"XXL_JOB_DATABASE_URL": "mysql+pymysql://root:secret-word@127.0.0.1:1/x"},
            "XXL_JOB_DATABASE_URL: mysql+pymysql://root:***@",
        ),
    ],
    ids=["no schema", "bad value", "no database"],
)
def test_an_impossible_start_is_one_line_and_code_2(
    programs: Programs, environ: dict[str, str], setting: dict[str, str], expected: str
) -> None:
    program = programs.fork("workers", WORKERS, environ | setting)
    assert program.process.wait(60) == 2
    assert expected in program.output
    assert "Traceback" not in program.output
    assert "secret-word" not in program.output
    assert len(program.output.strip().splitlines()) == 1


def test_a_child_that_cannot_be_started_is_tried_again_later(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dead, alive = Mock(**{"is_alive.return_value": False, "exitcode": -9}), Mock()
    supervisor, child = Supervisor(config), _Child("monitor", dead, time.monotonic())
    starts = iter([OSError(11, "Resource temporarily unavailable"), alive])
    monkeypatch.setattr("workers.processes.supervisor.start_child", Mock(side_effect=starts))
    with supervisor._signalled, supervisor._signals_to:
        supervisor._check(child)
        for _ in range(2):
            child.restart_at = time.monotonic()
            supervisor._check(child)
    assert [record.message.split(" name=")[0] for record in caplog.records] == [
        "child died",
        "child not started",
    ]
    assert "Resource temporarily unavailable restart_in_s=0.4" in caplog.text
    assert (child.process, child.restart_at) == (alive, None)


def test_a_child_that_hangs_is_killed_and_restarted(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hanging = Mock(**{"is_alive.return_value": True, "exitcode": -9})
    supervisor = Supervisor(config)
    child = _Child("monitor", hanging, time.monotonic() - 2 * STABLE_S, backoff_s=RESTART_MAX_S)
    liveness = Mock(**{"is_lost.side_effect": lambda _name, now, *, started_at: now - started_at > 60})
    with supervisor._signalled, supervisor._signals_to:
        for _ in range(2):
            supervisor._end_lost(child, liveness)
        hanging.kill.assert_called_once_with()
        hanging.is_alive.return_value = False
        supervisor._check(child)
    assert caplog.messages == [
        "child killed name=monitor reason=hangs",
        "child died name=monitor exit_code=-9 restart_in_s=0.2",
    ]


def test_a_child_that_can_never_be_started_ends_the_supervisor(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(config)
    child = _Child("monitor", Mock(), 0.0, backoff_s=RESTART_MAX_S, restart_at=0.0)
    monkeypatch.setattr(
        "workers.processes.supervisor.start_child", Mock(side_effect=OSError(24, "Too many open files"))
    )
    with supervisor._signalled, supervisor._signals_to, pytest.raises(OSError, match="Too many"):
        supervisor._check(child)


def test_a_start_that_fails_leaves_no_child(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Mock(**{"is_alive.side_effect": [True, False, False]})
    starts = Mock(side_effect=[first, OSError(11, "Resource temporarily unavailable")])
    monkeypatch.setattr("workers.processes.supervisor.start_child", starts)
    monkeypatch.setattr("workers.processes.supervisor.signal", Mock())
    monkeypatch.setattr("workers.processes.supervisor.gc", Mock())
    supervisor = Supervisor(config)
    with supervisor._signalled, supervisor._signals_to, pytest.raises(OSError, match="unavailable"):
        supervisor.run()
    first.terminate.assert_called_once_with()
    first.join.assert_called_once_with()


def test_a_signal_ends_the_wait_between_two_checks(config: Config) -> None:
    supervisor = Supervisor(config)
    supervisor._signals_to.send(b"\x0f")  # as the interpreter does
    started = time.monotonic()
    with supervisor._signalled, supervisor._signals_to:
        supervisor._await_change(60.0)
    assert time.monotonic() - started < 30
