"""Runs: results, exceptions, timeouts and kills in threads, tasks and child processes."""

import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from executor_client import HandlerRegistry, JobKilled, JobLogHandler, JobTimedOut, context
from tests.executor_client import child_handlers
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import Caller, MakeExecutor
from tests.support.executor_runs import sleepers

Result = Callable[[int], tuple[int, str | None]]


def raise_error() -> None:
    raise ValueError("bad day")


def raise_lines() -> None:
    raise ValueError("\nfirst\r\nsecond")


def leave() -> None:
    raise SystemExit(3)


def line_of(function: Callable[[], Any]) -> str:
    code = function.__code__
    return f"({Path(code.co_filename).name}:{code.co_firstlineno + 1})"


def set_twice() -> None:
    context.fail("first")
    context.success()


OUTCOMES: dict[str, tuple[Callable[[], Any], int, str | None]] = {
    "nothing": (lambda: None, 200, None),
    "text": (lambda: "42 rows", 200, "42 rows"),
    "number": (lambda: 5, 200, "5"),
    "object": (lambda: {"rows": 5, "day": date(2026, 1, 31)}, 200, '{"rows":5,"day":"2026-01-31"}'),
    "true": (lambda: context.success(), 200, None),
    "success": (lambda: context.success("fine"), 200, "fine"),
    "fail": (lambda: context.fail("no"), 500, "no"),
    "timeout": (lambda: context.timeout("slow"), 502, "slow"),
    "own_code": (lambda: context.result(411, "own"), 411, "own"),
    "last_wins": (set_twice, 200, "first"),
    "lost": (lambda: context.result(0, "x"), 500, "job handle result lost."),
    "no_code": (lambda: context.result("x"), 500, "job handle result lost."),  # type: ignore[arg-type]
    "huge_code": (lambda: context.result(2**31), 500, "job handle result lost."),
    "long": (lambda: "x" * 50_001, 200, "x" * 50_000 + "..."),
    "odd": (lambda: "a\x00b\ud800", 200, "ab?"),
    "error": (raise_error, 500, f"ValueError: bad day {line_of(raise_error)}"),
    "error_of_many_lines": (raise_lines, 500, f"ValueError: first {line_of(raise_lines)}"),
    "exit": (leave, 500, f"SystemExit: 3 {line_of(leave)}"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_result_of_a_handler(
    caller: Caller, handlers: HandlerRegistry, result: Result, name: str
) -> None:
    handler, code, msg = OUTCOMES[name]
    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (code, msg)


def test_a_traceback_starts_in_the_handler(caller: Caller, handlers: HandlerRegistry, result: Result) -> None:
    handlers.job("h")(raise_error)
    caller.accepted(1, executorHandler="h", executorParams="p1")
    result(1)
    text = caller.log(1)["logContent"]
    assert "param: p1" in text
    assert "ValueError: bad day\n" in text
    assert "work.py" not in text
    assert "handleCode: 500" in text


def test_the_context_has_the_fields_of_the_run(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    recorded: list[Any] = []
    handlers.job("h")(
        lambda: recorded.extend(
            [context.param, context.job_id, context.log_id, context.shard_index, context.shard_total]
        )
    )
    caller.accepted(8, executorHandler="h", executorParams="p", jobId=3, broadcastIndex=1, broadcastTotal=4)
    result(8)
    assert recorded == ["p", 3, 8, 1, 4]


def test_hooks_run_once_in_the_job_thread(caller: Caller, handlers: HandlerRegistry, result: Result) -> None:
    recorded: list[tuple[str, str]] = []

    def record(event: str) -> Callable[[], None]:
        return lambda: recorded.append((event, threading.current_thread().name))

    handlers.job("h", init=record("init"), destroy=record("destroy"))(record("run"))
    for log_id in (1, 2):
        caller.accepted(log_id, executorHandler="h", jobId=5)
        result(log_id)
    caller.post("/kill", {"jobId": 5})
    eventually(lambda: len(recorded) == 4)
    assert [event for event, _ in recorded] == ["init", "run", "run", "destroy"]
    assert {thread for _, thread in recorded} == {"job-5"}


@pytest.mark.parametrize("hook", [raise_error, leave])
def test_a_hook_that_fails_does_not_stop_the_job(
    caller: Caller, handlers: HandlerRegistry, result: Result, hook: Callable[[], None]
) -> None:
    handlers.job("h", init=hook, destroy=hook)(lambda: "done")
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, "done")


def spin() -> None:
    """Ignore ``cancelled``."""
    while True:
        pass


def wait_for_cancel() -> None:
    context.cancelled.wait(30)


async def sleep_async() -> None:
    await asyncio.sleep(30)


class Endless:
    """Result whose text has no end."""

    def __str__(self) -> str:
        spin()
        return ""


def return_endless() -> Endless:
    return Endless()


async def return_endless_async() -> Endless:
    return Endless()


@pytest.mark.parametrize("handler", [spin, wait_for_cancel, sleep_async])
def test_a_timeout_ends_the_handler(
    caller: Caller, handlers: HandlerRegistry, result: Result, handler: Callable[[], Any]
) -> None:
    handlers.job("h")(handler)
    handlers.job("next")(lambda: "next")
    caller.accepted(1, executorHandler="h", executorTimeout=1)
    assert result(1) == (502, "job execute timeout ")
    eventually(lambda: not caller.is_busy(), message="the handler does not end")
    caller.accepted(2, executorHandler="next")
    assert result(2) == (200, "next")


@pytest.mark.parametrize(
    "handler", [spin, wait_for_cancel, sleep_async, return_endless, return_endless_async]
)
def test_a_killed_handler_ends(
    caller: Caller, handlers: HandlerRegistry, result: Result, handler: Callable[[], Any]
) -> None:
    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h", jobId=6)
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    caller.post("/kill", {"jobId": 6})
    assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    eventually(
        lambda: not any(thread.name == "job-6" for thread in threading.enumerate()),
        message="the thread stays",
    )


@pytest.mark.parametrize(("timeout", "kind"), [(1, JobTimedOut), (0, JobKilled)])
def test_a_handler_can_clean_up_when_it_is_ended(
    caller: Caller, handlers: HandlerRegistry, result: Result, timeout: int, kind: type[BaseException]
) -> None:
    recorded: list[type[BaseException]] = []

    def clean_up() -> None:
        try:
            spin()
        except BaseException as exc:
            recorded.append(type(exc))
            raise

    handlers.job("h")(clean_up)
    caller.accepted(1, executorHandler="h", executorTimeout=timeout)
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    if not timeout:
        caller.post("/kill", {"jobId": 1})
    result(1)
    assert recorded == [kind]


def test_an_async_handler_succeeds(caller: Caller, handlers: HandlerRegistry, result: Result) -> None:
    async def handler() -> str:
        await asyncio.sleep(0)
        context.log("from the task")
        await asyncio.to_thread(context.log, "from a thread of it")
        return "done"

    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, "done")
    assert {"from the task", "from a thread of it"} <= {
        line.rpartition("] ")[2] for line in caller.log(1)["logContent"].splitlines()
    }


def test_the_result_is_frozen_at_the_timeout(
    caller: Caller, handlers: HandlerRegistry, result: Result, admin: StandInAdmin
) -> None:
    def ignore_cancel() -> None:
        context.cancelled.wait(30)
        context.success("late success")

    handlers.job("h")(ignore_cancel)
    caller.accepted(1, executorHandler="h", executorTimeout=1)
    assert result(1) == (502, "job execute timeout ")
    eventually(lambda: not caller.is_busy())
    assert admin.repeats()[1] == 1


def test_a_handler_that_does_not_end_is_abandoned(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    release = threading.Event()

    def ignore_everything() -> None:
        while not release.is_set():
            try:
                release.wait(0.01)
            except BaseException:
                continue

    handlers.job("h")(ignore_everything)
    handlers.job("next")(lambda: "next")
    caller.accepted(1, executorHandler="h", executorTimeout=1)
    caller.accepted(2, executorHandler="h")
    assert result(1) == (502, "job execute timeout ")
    eventually(lambda: "execute start" in caller.log(2)["logContent"], message="the queue does not continue")
    text = caller.log(1)["logContent"]
    assert "continues in the background" in text
    assert "release.wait(0.01)" in text, "its stack"
    assert "executor_client/execution/run_kinds" not in text
    release.set()
    assert result(2) == (200, None)


def test_a_run_killed_before_its_start_never_starts(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    started: list[int] = []
    release = threading.Event()
    handlers.job("first")(lambda: release.wait(30))
    handlers.job("second", init=lambda: release.wait(30))(lambda: started.append(1))
    caller.accepted(1, executorHandler="second")
    caller.post("/kill", {"jobId": 1})
    assert result(1) == (500, "scheduling center kill job. [job not executed, in the job queue, killed.]")
    release.set()
    eventually(lambda: not any(thread.name == "job-1" for thread in threading.enumerate()))
    assert started == []


def test_logging_is_copied_into_the_job_log(
    start: MakeExecutor, handlers: HandlerRegistry, result: Result
) -> None:
    caller = start(route_logging=True)

    def handler() -> None:
        logging.getLogger("myapp").warning("logged %s", 5)
        try:
            raise_error()
        except ValueError:
            logging.getLogger("myapp").exception("caught")

    handlers.job("h")(handler)
    caller.accepted(1, executorHandler="h")
    result(1)
    text = caller.log(1)["logContent"]
    assert "WARNING logged 5\n" in text
    assert "ValueError: bad day" in text


def test_log_routing_keeps_the_last_resort_handler(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before, handler = root.handlers[:], JobLogHandler()
    root.handlers[:] = [handler]
    try:
        logging.getLogger("myapp").warning("heard")
        logging.getLogger("myapp").info("not heard")
    finally:
        root.handlers[:] = before
    assert capsys.readouterr().err == "heard\n"


def test_a_process_handler_runs_in_a_child(caller: Caller, handlers: HandlerRegistry, result: Result) -> None:
    handlers.job("h", process=True)(child_handlers.child_says)
    caller.accepted(1, executorHandler="h", executorParams="p")
    assert result(1) == (200, f"not {os.getpid()}"), "its parent is this process"
    text = caller.log(1)["logContent"]
    assert "parameter p\n" in text
    assert "printed\n" in text


def test_a_child_starts_though_the_search_path_has_another_entry(
    caller: Caller, handlers: HandlerRegistry, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path, Path("/nowhere")])
    handlers.job("h", process=True)(child_handlers.child_says)
    caller.accepted(1, executorHandler="h")
    assert result(1)[0] == 200


def test_a_child_starts_though_python_is_embedded_in_a_server(
    caller: Caller, handlers: HandlerRegistry, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/usr/bin/uwsgi")
    handlers.job("h", process=True)(child_handlers.child_says)
    caller.accepted(1, executorHandler="h")
    assert result(1)[0] == 200


@pytest.mark.parametrize("path", [None, "/srv/lib"])
def test_programs_of_a_child_inherit_the_search_path_of_the_executor(
    caller: Caller,
    handlers: HandlerRegistry,
    result: Result,
    monkeypatch: pytest.MonkeyPatch,
    path: str | None,
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    handlers.job("h", process=True)(child_handlers.child_search_path)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (200, path)


def test_a_process_handler_has_typed_arguments(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    handlers.job("h", process=True)(child_handlers.child_takes)
    caller.accepted(1, executorHandler="h", executorParams="day=2026-01-31")
    caller.accepted(2, executorHandler="h", executorParams="31.1.")
    found = json.loads(result(1)[1] or "")
    assert found.pop("pid") != os.getpid()
    assert found == {"day": "2026-01-31", "limit": 5}
    assert result(2) == (500, "day: '31.1.' is not a date; expected YYYY-MM-DD")


def test_an_error_in_a_process_handler_is_its_result(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    handlers.job("h", process=True)(child_handlers.child_fails)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (500, f"ValueError: bad day {line_of(child_handlers.child_fails)}")
    assert "Traceback" in caller.log(1)["logContent"]


@pytest.mark.parametrize("routed", [True, False])
def test_a_child_logs_like_its_executor(
    start: MakeExecutor, handlers: HandlerRegistry, result: Result, routed: bool
) -> None:
    caller = start(route_logging=routed)
    handlers.job("h", process=True)(child_handlers.child_logs)
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.INFO)
    try:
        caller.accepted(1, executorHandler="h")
        assert result(1) == (200, None)
    finally:
        logging.getLogger().setLevel(level)
    assert ("[child_handlers#child_logs]" in caller.log(1)["logContent"]) is routed
    assert "fine detail" not in caller.log(1)["logContent"]


def test_a_crashed_child_fails_its_run_only(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    handlers.job("h", process=True)(child_handlers.child_dies)
    caller.accepted(1, executorHandler="h")
    assert result(1) == (500, "the handler's process ended without a result, exit value(7)")


@pytest.mark.parametrize("handler", [child_handlers.child_waits, child_handlers.child_waits_async])
def test_a_kill_cancels_the_child(
    caller: Caller, handlers: HandlerRegistry, result: Result, handler: Callable[[], Any]
) -> None:
    handlers.job("h", process=True)(handler)
    caller.accepted(1, executorHandler="h")
    eventually(lambda: "waiting" in caller.log(1)["logContent"])
    caller.post("/kill", {"jobId": 1})
    assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    eventually(lambda: "cancelled" in caller.log(1)["logContent"])


def test_a_child_that_does_not_end_is_killed_with_its_descendants(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    handlers.job("h", process=True)(child_handlers.child_spins_with_family)
    caller.accepted(1, executorHandler="h")
    eventually(lambda: "family ready" in caller.log(1)["logContent"])
    group = eventually(lambda: [line for line in sleepers() if line])
    caller.post("/kill", {"jobId": 1})
    assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    eventually(lambda: not set(group) & set(sleepers()), message="a descendant survives")
