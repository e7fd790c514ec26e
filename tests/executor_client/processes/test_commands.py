"""Commands of handlers: their output, their errors, and their end with the run."""

import asyncio
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executor_client import CommandFailed, Executor, HandlerRegistry, context
from executor_client.execution.child_channel import ChildReporter
from executor_client.processes.commands import OUTPUT_MAX, CommandResult
from executor_client.processes.tree import LEFT_RUNNING
from executor_client.runs.context import JobContext
from executor_client.testing import run_handler
from executor_client.wire.errors import RunFailed
from executor_client.wire.protocol import RunRequest
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, Caller, MakeExecutor, run_fields
from tests.support.executor_client_execution import PRINTS_LATER, ROLLS_BACK
from tests.support.truth_table import truth_table

Result = Callable[[int], tuple[int, str | None]]


def shell(script: str, **options: Any) -> CommandResult:
    return context.run(["sh", "-c", script], **options)


def returned(handler: Callable[[], CommandResult]) -> CommandResult:
    """Return what ``context.run`` returned in a handler."""
    found: list[CommandResult] = []
    result = run_handler(lambda: found.append(handler()))
    assert result.error is None, result
    return found[0]


def test_both_outputs_are_in_the_log_and_returned() -> None:
    found: list[CommandResult] = []
    script = "echo out; echo err >&2; printf 'h\\303\\251 '; sleep 0.01; printf end"
    result = run_handler(lambda: found.append(shell(script)))
    assert found == [CommandResult(0, "out\nhé end", "err\n")]
    assert sorted(line[20:] for line in result.log.splitlines()) == ["err", "hé end", "out"]


def test_lines_are_in_the_log_before_the_command_ends(
    caller: Caller, handlers: HandlerRegistry, result: Result, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    handlers.job("h")(lambda: shell(f"echo first; while [ ! -e {gate} ]; do sleep 0.02; done") and None)
    caller.accepted(1, executorHandler="h")
    eventually(lambda: "first\n" in caller.log(1)["logContent"])
    gate.touch()
    assert result(1) == (200, None)


def test_arguments_of_a_command(tmp_path: Path) -> None:
    assert returned(lambda: context.run(["cat"], input="typed é")).stdout == "typed é"
    assert returned(lambda: context.run(["cat"])).stdout == "", "without input there is none"
    assert returned(lambda: context.run(["pwd"], cwd=tmp_path)).stdout.strip() == str(tmp_path.resolve())
    assert returned(lambda: shell("echo $A", env={"A": "1", "PATH": os.environ["PATH"]})).stdout == "1\n"
    assert returned(lambda: shell("exit 3", check=False)).returncode == 3


def test_a_background_process_goes_on_and_prints_into_nothing(tmp_path: Path) -> None:
    result = run_handler(lambda: shell(PRINTS_LATER.format(folder=tmp_path)) and None)
    (tmp_path / "gate").touch()
    eventually((tmp_path / "ended").exists)
    assert [line[20:] for line in result.log.splitlines()] == ["started", LEFT_RUNNING]


def leave_printing() -> None:
    shell(PRINTS_LATER.format(folder=context.param))


def test_a_background_process_of_a_child_process_goes_on_too(
    caller: Caller, handlers: HandlerRegistry, result: Result, tmp_path: Path
) -> None:
    handlers.job("h", process=True)(leave_printing)
    caller.accepted(1, executorHandler="h", executorParams=str(tmp_path))
    assert result(1) == (200, None)
    (tmp_path / "gate").touch()
    eventually((tmp_path / "ended").exists)
    assert LEFT_RUNNING in caller.log(1)["logContent"]


def test_a_long_output_keeps_its_end() -> None:
    program = f"print('x' * {OUTPUT_MAX} + 'end')"
    output = returned(lambda: context.run([sys.executable, "-c", program])).stdout
    assert (len(output), output[-4:]) == (OUTPUT_MAX, "end\n")


@truth_table(
    "handler, expected",
    [
        (lambda: shell("echo no space >&2; exit 3"), "sh: exit value(3): no space"),
        (lambda: shell("kill -9 $$"), "sh: exit value(-9)"),
        (lambda: shell("echo begun; sleep 60", timeout=0.2), "sh: timed out after 0.2 s: begun"),
        (lambda: context.run(["/no/such"]), "cannot start /no/such: [Errno 2] No such file"),
        (lambda: context.run("ls -l"), "a list is required"),
    ],
)
def test_the_message_of_a_run_names_what_failed(handler: Callable[[], Any], expected: str) -> None:
    result = run_handler(handler)
    assert (result.code, expected in (result.msg or "")) == (500, True), result.msg
    assert "Traceback" not in result.log


def test_a_handler_can_go_on_after_a_failed_command() -> None:
    def handler() -> str:
        try:
            shell("echo 7; exit 2")
        except CommandFailed as exc:
            return f"{exc.result.returncode} {exc.result.stdout.strip()}"
        return "no error"

    assert run_handler(handler).msg == "2 7"


# --- the end of a run; ``sleep 61`` is started by a shell that ignores SIGTERM


def start_family() -> None:
    shell("trap '' TERM; echo family ready; sleep 61; true")


async def start_family_async() -> None:
    await asyncio.to_thread(start_family)


def start_group() -> None:
    shell("echo family ready; timeout 61 sleep 61; true")


def sleepers() -> list[int]:
    """Return the ids of ``sleep 61`` processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == b"sleep\x0061\x00":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("function", "process", "timeout"),
    [
        (start_family, False, 0),
        (start_family, False, 1),
        (start_group, False, 0),
        (start_family_async, False, 0),
        (start_family, True, 0),
    ],
    ids=["killed", "timed_out", "group", "async", "in_child"],
)
def test_a_command_ends_with_its_run(
    caller: Caller,
    handlers: HandlerRegistry,
    result: Result,
    monkeypatch: pytest.MonkeyPatch,
    function: Any,
    process: bool,
    timeout: int,
) -> None:
    monkeypatch.setattr("executor_client.processes.commands.GRACE_S", 0.2)
    handlers.job("h", process=process)(function)
    caller.accepted(1, executorHandler="h", executorTimeout=timeout)
    eventually(lambda: "family ready" in caller.log(1)["logContent"])
    family = eventually(sleepers)
    if not timeout:
        caller.post("/kill", {"jobId": 1})
    assert result(1)[0] == (502 if timeout else 500)
    eventually(lambda: not set(family) & set(sleepers()), message="a descendant survives")


@pytest.mark.parametrize(
    "source", [ROLLS_BACK, f"sh -c '{ROLLS_BACK}'; true"], ids=["itself", "below a shell"]
)
def test_a_command_has_time_to_end(
    start: MakeExecutor,
    handlers: HandlerRegistry,
    result: Result,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    monkeypatch.setattr("executor_client.processes.commands.GRACE_S", 30)
    handlers.job("h")(lambda: shell(source) and None)
    caller = start(timing=replace(FAST, abandon_s=30))
    caller.accepted(1, executorHandler="h")
    eventually(lambda: "ready\n" in caller.log(1)["logContent"])
    caller.post("/kill", {"jobId": 1})
    assert result(1)[0] == 500
    assert "rolled back\n" in caller.log(1)["logContent"]


# --- commands that outlive their handler; the shell ends at SIGTERM, the program below it later or not at all


async def run_param() -> None:
    await asyncio.to_thread(shell, context.param)


def run_param_in_thread() -> None:
    thread = threading.Thread(target=shell, args=(context.param,), daemon=True)
    thread.start()
    thread.join()


@pytest.mark.parametrize("function", [run_param, run_param_in_thread], ids=["async", "thread"])
def test_a_child_process_ends_the_commands_that_its_handler_has_left(
    start: MakeExecutor, handlers: HandlerRegistry, result: Result, function: Any
) -> None:
    handlers.job("h", process=True)(function)
    caller = start(timing=replace(FAST, cooperative_s=1, terminate_s=30))
    below = 'trap "" TERM; echo pid $$ ready; exec sleep 61'
    caller.accepted(1, executorHandler="h", executorParams=f"sh -c '{below}'; true")
    ready = eventually(lambda: re.search(r"pid (\d+) ready", caller.log(1)["logContent"]))
    caller.post("/kill", {"jobId": 1})
    assert result(1)[0] == 500
    eventually(lambda: int(ready[1]) not in sleepers(), message="the program survives")


def test_a_stop_waits_for_the_commands_that_handlers_have_left(
    start: MakeExecutor,
    executors: list[Executor],
    handlers: HandlerRegistry,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("executor_client.processes.commands.GRACE_S", 30)
    handlers.job("h")(run_param)
    output = tmp_path / "output"
    start().accepted(1, executorHandler="h", executorParams=f"sh -c '{ROLLS_BACK}' > {output}; true")
    eventually(lambda: output.exists() and output.read_text() == "ready\n")
    executors[-1].stop()
    assert output.read_text() == "ready\nrolled back\n"


def test_a_command_does_not_start_after_the_end() -> None:
    job = JobContext(RunRequest.from_wire(run_fields(1)), lambda text: None)
    job._commands.end()
    with pytest.raises(RunFailed, match="^cannot start sleep: the run has ended$"):
        job.run(["sleep", "60"])


def test_a_command_of_a_child_ends_with_the_executor() -> None:
    executors, childs = socket.socketpair()
    reporter = ChildReporter(childs.detach())
    job = JobContext(RunRequest.from_wire(run_fields(1)), lambda text: None)
    reporter.attach(job)
    executors.close()  # as by kill -9
    with pytest.raises(CommandFailed, match="^sleep: ended with the run$"):
        job.run(["sleep", "60"])
    reporter.close()
