"""``run_handler`` tells what an executor would: the same handlers in both."""

import logging
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest

from executor_client import HandlerRegistry, context
from executor_client.config.config import Timing
from executor_client.testing import HandlerResult, run_handler
from tests.executor_client.sample_handlers import SAMPLES
from tests.support.eventually import eventually
from tests.support.executor_client import Caller, MakeExecutor

LONG = ("waits", "loops", "awaits long", "ignores the end", "child that waits")
Result = Callable[[int], tuple[int, str | None]]


def plain(log: str) -> list[str]:
    """Return the lines of a log without times, threads and the lines of the executor."""
    without = re.sub(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", log)
    lines = re.sub(r"\[[^]\n]*\](?= |$)", "", without).splitlines()
    return [line for line in lines if not line.startswith("-----------")]


@pytest.fixture
def handlers() -> HandlerRegistry:
    return SAMPLES


@dataclass
class Both:
    """Runs a handler in an executor and by ``run_handler``, and compares."""

    caller: Caller
    result: Result

    def run(self, name: str, end: Callable[[], None] = lambda: None, **options: float) -> HandlerResult:
        seconds = int(options.get("timeout", 0))
        self.caller.accepted(1, executorHandler=name, executorParams="p", executorTimeout=seconds)
        end()
        mine = run_handler(name, "p", handlers=SAMPLES, **options)  # type: ignore[arg-type]
        code, message = self.result(1)
        assert (mine.code, mine.msg) == (code, message)
        assert plain(mine.log) == plain(self.caller.log(1)["logContent"])
        return mine


@pytest.fixture
def both(start: MakeExecutor, result: Result) -> Both:
    return Both(start(route_logging=True), result)


@pytest.mark.parametrize("name", [name for name in SAMPLES.names() if name not in LONG])
def test_a_run_ends_as_in_an_executor(both: Both, name: str) -> None:
    ended = both.run(name)
    assert 0 <= ended.duration < 30
    assert (ended.error is None) is (not name.startswith(("raises", "chains")))


@pytest.mark.parametrize("name", LONG)
def test_a_time_out_ends_a_run_as_in_an_executor(both: Both, name: str) -> None:
    ended = both.run(name, timeout=1)
    assert (ended.code, ended.msg) == (502, "job execute timeout ")
    assert ended.duration >= 1


def test_the_time_out_of_a_child_process_may_be_a_fraction_too() -> None:
    assert run_handler("child that waits", timeout=0.4, handlers=SAMPLES).code == 502


def test_a_kill_ends_a_run_as_in_an_executor(both: Both) -> None:
    def kill() -> None:
        eventually(lambda: "waiting" in both.caller.log(1)["logContent"])
        both.caller.post("/kill", {"jobId": 1})

    assert both.run("waits", kill, kill_after=0.3).code == 500


def test_the_level_of_the_root_logger_is_set_meanwhile() -> None:
    before = logging.getLogger().level

    def handler() -> None:
        logging.getLogger("shop").debug("in detail")

    assert "in detail" not in run_handler(handler).log
    assert "DEBUG in detail" in run_handler(handler, log_level="debug").log
    assert logging.getLogger().level == before


def test_type_checkers_accept_a_handler_with_arguments() -> None:
    assert get_type_hints(run_handler)["handler"] == str | Callable[..., Any]


def test_the_handler_runs_in_the_thread_of_the_test() -> None:
    assert run_handler(lambda: threading.current_thread().name).msg == threading.current_thread().name
    assert (
        run_handler(lambda: threading.current_thread().name, timeout=60).msg != threading.main_thread().name
    )


def test_what_is_printed_after_a_run_goes_where_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert "inside" in run_handler(lambda: print("inside")).log  # noqa: T201
    print("outside")  # noqa: T201
    assert capsys.readouterr().out == "outside\n"


def test_a_hanging_handler_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Timing(idle_limit_s=0, cooperative_s=0.01, abandon_s=0.05)
    monkeypatch.setattr("executor_client.execution.single_run.TIMING", fast)
    go_on = threading.Event()

    def handler() -> None:
        while not go_on.is_set():
            try:
                go_on.wait(0.01)
            except BaseException:
                context.log("not now")

    assert run_handler(handler, timeout=0.05).code == 502
    go_on.set()


def test_ctrl_c_ends_the_test_and_not_only_the_run() -> None:
    def handler() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(5)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_handler(handler)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ZeroDivisionError):
        raise run_handler(lambda: 1 // 0).error  # type: ignore[misc]
