"""Async handlers: one event loop for all, cancellation, and handlers that block it."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from executor_client import HandlerRegistry, context
from executor_client.execution.daemon_workers import DaemonWorkers
from executor_client.execution.event_loop import WORKERS_MAX, EventLoop
from executor_client.execution.watchdog import Watchdog
from executor_client.testing import run_handler
from executor_client.wire.errors import RunFailed
from tests.executor_client.process import ROOT
from tests.support.eventually import eventually
from tests.support.executor_client import Caller, MakeExecutor

Result = Callable[[int], tuple[int, str | None]]


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    made = Watchdog()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def loop(watchdog: Watchdog) -> Iterator[EventLoop]:
    """A loop that is checked each 20 ms, and replaced when it is blocked for 100 ms."""
    made = EventLoop(watchdog.after, check_s=0.02, lost_s=0.1)
    yield made
    made.stop()


def test_async_handlers_share_a_loop(caller: Caller, handlers: HandlerRegistry, result: Result) -> None:
    signals: dict[str, asyncio.Event] = {}

    async def waiting() -> str:
        signals["go"] = asyncio.Event()
        await signals["go"].wait()
        return threading.current_thread().name

    async def going() -> str:
        signals["go"].set()
        return threading.current_thread().name

    handlers.job("waiting")(waiting)
    handlers.job("going")(going)
    caller.accepted(1, executorHandler="waiting", jobId=1)
    eventually(lambda: "go" in signals)
    caller.accepted(2, executorHandler="going", jobId=2)
    assert result(1) == result(2) == (200, "async-handlers")


@pytest.mark.parametrize("timeout", [1, 0])
def test_a_task_is_cancelled_where_it_awaits(
    caller: Caller, handlers: HandlerRegistry, result: Result, timeout: int
) -> None:
    recorded: list[str] = []

    async def handler() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            recorded.append(f"cancelled {context.cancelled.is_set()}")
            raise
        finally:
            await asyncio.sleep(0)
            recorded.append("cleaned up")

    async def other() -> str:
        while not recorded:
            await asyncio.sleep(0.01)
        return "not cancelled"

    handlers.job("h")(handler)
    handlers.job("other")(other)
    caller.accepted(1, executorHandler="h", executorTimeout=timeout)
    caller.accepted(2, executorHandler="other", jobId=2)
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    if not timeout:
        caller.post("/kill", {"jobId": 1})
    assert result(1)[0] == (502 if timeout else 500)
    assert result(2) == (200, "not cancelled")
    eventually(lambda: recorded == ["cancelled True", "cleaned up"])


def test_a_task_that_ignores_cancellation_is_abandoned(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    released = threading.Event()
    cancelled: list[bool] = []

    async def pause() -> None:
        await asyncio.sleep(0.01)

    async def handler() -> None:
        while not released.is_set():
            try:
                await pause()
            except asyncio.CancelledError:
                cancelled.append(True)

    async def following() -> str:
        return "following"

    handlers.job("h")(handler)
    handlers.job("following")(following)
    caller.accepted(1, executorHandler="h", executorTimeout=1)
    caller.accepted(2, executorHandler="following", jobId=2)
    assert result(2) == (200, "following")
    assert result(1) == (502, "job execute timeout ")
    eventually(lambda: "continues in the background" in caller.log(1)["logContent"])
    text = caller.log(1)["logContent"]
    assert text.index("await pause()") < text.index("await asyncio.sleep(0.01)"), "its stack"
    assert "executor_client/execution/run_kinds" not in text
    assert len(cancelled) > 1
    released.set()


def test_the_end_of_a_task_does_not_end_the_loop(
    caller: Caller, handlers: HandlerRegistry, result: Result
) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async def following() -> str:
        return "following"

    handlers.job("leave")(leave)
    handlers.job("following")(following)
    caller.accepted(1, executorHandler="leave")
    caller.accepted(2, executorHandler="following", jobId=2)
    assert str(result(1)[1]).startswith("SystemExit: 3 (test_event_loop.py:")
    assert result(2) == (200, "following")


variable: ContextVar[str] = ContextVar("variable", default="unset")


def test_a_task_has_the_variables_of_its_run(handlers: HandlerRegistry) -> None:
    async def handler(text: str) -> str:
        found = await asyncio.gather(asyncio.sleep(0, context.log_id), asyncio.to_thread(variable.get))
        return f"{found} {text}"

    variable.set("of the test")
    assert run_handler(handler, "x").msg == "[1, 'of the test'] x"
    assert run_handler(lambda: handler("a wrapper")).msg == "[1, 'of the test'] a wrapper"


def test_tasks_that_remain_are_cancelled_at_the_end(start: MakeExecutor, handlers: HandlerRegistry) -> None:
    recorded: list[Any] = []

    async def maintain() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            recorded.append("ended")

    async def handler() -> None:
        recorded.append(asyncio.create_task(maintain()))
        await asyncio.sleep(0)

    async def run(loop: EventLoop) -> None:
        """Never awaited."""

    loop = EventLoop()
    loop.start(handler(), "h").wait()
    loop.stop()
    assert recorded[1:] == ["ended"]
    with pytest.raises(RunFailed, match="is stopping"):
        loop.start(run(loop), "h")


def test_a_handler_that_blocks_the_loop_is_named(loop: EventLoop, caplog: pytest.LogCaptureFixture) -> None:
    released = threading.Event()

    async def block() -> None:
        context.log("before")
        released.wait(10)

    async def through_a_task() -> str:
        await asyncio.create_task(block())
        return "done"

    def in_run() -> str:
        return str(loop.start(through_a_task(), "slowHandler").wait()[0])

    def release_when_reported() -> None:
        eventually(lambda: "blocked" in caplog.text)
        released.set()

    threading.Thread(target=release_when_reported).start()
    with caplog.at_level(logging.WARNING):
        result = run_handler(in_run)
    assert result.msg == "done"
    (record,) = [each for each in caplog.records if each.name == "executor_client.execution.event_loop"]
    assert "event loop blocked by handler 'slowHandler' job_id=1 log_id=1" in record.getMessage()
    assert "test_event_loop.py" in record.getMessage() or "threading.py" in record.getMessage()
    assert "this handler blocks the event loop" in result.log
    assert "released.wait(10)" in result.log


def test_a_loop_that_stays_blocked_is_replaced(loop: EventLoop) -> None:
    released = threading.Event()

    async def block() -> None:
        released.wait(10)

    async def name() -> str:
        return "answered"

    blocked = loop.start(block(), "block")
    eventually(lambda: loop._thread is not None and loop._thread.blocked_s > 0.1)
    assert loop.start(name(), "name").wait() == ("answered", None)
    released.set()
    assert blocked.wait() == (None, None)


def test_an_idle_loop_is_not_checked(loop: EventLoop) -> None:
    async def nothing() -> None:
        """Return at once."""

    loop.start(nothing(), "nothing").wait()
    eventually(lambda: not loop._is_watching)


def test_a_blocked_thread_does_not_keep_the_process() -> None:
    program = (
        "import asyncio, threading\n"
        "from executor_client.execution.event_loop import EventLoop\n"
        "loop, called = EventLoop(), threading.Event()\n"
        "def block():\n"
        "    called.set()\n"
        "    threading.Event().wait()\n"
        "loop.start(asyncio.to_thread(block), 'blocks')\n"
        "assert called.wait(30)\n"
        "loop.stop()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=20, check=False)
    assert ended.returncode == 0


def test_many_calls_share_the_threads_of_the_loop(loop: EventLoop) -> None:
    async def call_often() -> set[str]:
        calls = [asyncio.to_thread(lambda: threading.current_thread().name) for _ in range(200)]
        return set(await asyncio.gather(*calls))

    for _ in range(2):
        names, error = loop.start(call_often(), "often").wait()
        assert error is None
        assert all(name.startswith("async-worker") for name in names)
        assert len(names) <= WORKERS_MAX


def test_the_threads_of_the_loop_are_limited() -> None:
    workers, barrier = DaemonWorkers(2, "w"), threading.Barrier(3)
    calls = [workers.submit(barrier.wait) for _ in range(2)]
    last = workers.submit(lambda: threading.current_thread().name)
    assert not last.running()
    barrier.wait(30)
    assert last.result(30).startswith("w_")
    assert sorted(call.result(30) for call in calls) in ([0, 1], [0, 2], [1, 2])
    workers.shutdown()
    with pytest.raises(RuntimeError):
        workers.submit(print)
