"""Event loop: one for all ``async def`` handlers of an executor, in its own thread.

Handlers can therefore share objects that belong to a loop, such as connections of httpx, aiohttp or asyncpg.
The loop starts with the first such handler and ends with the executor.
"""

import asyncio
import contextvars
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from executor_client.execution.daemon_workers import DaemonWorkers
from executor_client.runs.context import JobContext, current_run
from executor_client.wire.clock import local_stamp, monotonic_s, now_ms
from executor_client.wire.errors import Interruption, RunFailed

#: period of the pings; a loop that has not answered one by the next check is blocked
CHECK_S = 1.0
#: a loop that is blocked for longer is replaced for further runs
LOST_S = 60.0
#: threads of ``asyncio.to_thread``, for all handlers
WORKERS_MAX = 64
#: time for the tasks that remain when the loop ends to handle their cancellation
CLOSING_S = 1.0

logger = logging.getLogger(__name__)

After = Callable[[float, Callable[[], None]], object]
#: run and name of its handler
Owner = tuple[JobContext, str]

_handler: contextvars.ContextVar[str] = contextvars.ContextVar("executor_client_handler", default="")


class LoopTask:
    """Handler's coroutine on the loop; its job thread waits for it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], name: str
    ) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._name = name
        self._task: asyncio.Task[Any] | None = None
        self.completion: Future[asyncio.Task[Any]] = Future()

    def begin(self) -> None:
        """Create the task. Called in the loop, in a copy of the run's context."""
        _handler.set(self._name)
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self.completion.set_result)

    def cancel(self) -> None:
        """Raise CancelledError where the task awaits, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # the loop is closed
            return

    def wait(self) -> tuple[Any, BaseException | None]:
        """Wait for the task; return its value and the exception raised, or None for it.

        An exception raised in the waiting thread cancels the task.
        """
        try:
            task = self.completion.result()
        except Interruption:
            self.cancel()
            task = self.completion.result()
        try:
            return task.result(), None
        except BaseException as exc:
            return None, exc

    def stack(self) -> list[str]:
        """Return where the task awaits, a text for each coroutine, from the handler's inwards."""
        coroutine: Any = self._coroutine
        frames: list[tuple[FrameType, int]] = []
        while (frame := getattr(coroutine, "cr_frame", None)) is not None:
            frames.append((frame, frame.f_lineno))
            coroutine = coroutine.cr_await
        return traceback.StackSummary.extract(iter(frames)).format()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class _LoopThread:
    """Thread with a running loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._workers = DaemonWorkers(WORKERS_MAX, "async-worker")
        self.loop.set_default_executor(self._workers)
        self.loop.set_task_factory(self._create_task)
        #: run and handler of each task, to name the one that blocks the loop
        self._owners: WeakKeyDictionary[asyncio.Task[Any], Owner] = WeakKeyDictionary()
        self._stopping = False
        #: time of the unanswered ping in monotonic seconds, 0 if there is none
        self._pinged_s = 0.0
        self._thread = threading.Thread(target=self._main, name="async-handlers", daemon=True)
        contextvars.Context().run(self._thread.start)  # an empty context: the thread belongs to no run

    def is_thread(self, thread: threading.Thread) -> bool:
        """Return whether the loop runs in this thread."""
        return self._thread is thread

    @property
    def blocked_s(self) -> float:
        """Age of the ping that the loop has not answered, in seconds; 0 if there is none."""
        pinged_s = self._pinged_s
        return monotonic_s() - pinged_s if pinged_s else 0.0

    def ping(self) -> None:
        """Send the loop a ping, unless one is unanswered."""
        if not self._pinged_s:
            self._pinged_s = monotonic_s()
            self.loop.call_soon_threadsafe(self._answer)

    def blocker(self) -> tuple[Owner | None, list[str]]:
        """Return the run whose code the loop executes, if known, and its stack, a text for each frame."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        task = asyncio.current_task(self.loop)
        return self._owners.get(task) if task is not None else None, _stack_of(frame)

    def stop(self, timeout_s: float) -> None:
        """Cancel the tasks that remain and end the thread; do not wait for it while the loop is blocked."""
        self._stopping = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(0 if self.blocked_s > CHECK_S else timeout_s)

    def _answer(self) -> None:
        self._pinged_s = 0.0

    def _create_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, /, **options: Any
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        run = current_run()
        if run is not None:
            self._owners[task] = (run, _handler.get())
        return task

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._stopping:
            try:
                self.loop.run_forever()
            except BaseException as exc:  # SystemExit of a task, which is already the result of its run
                logger.debug("event loop left by exception=%s", type(exc).__name__)
        self._close()

    def _close(self) -> None:
        remaining = asyncio.all_tasks(self.loop)
        for task in remaining:
            task.cancel()
        if remaining:
            self.loop.run_until_complete(asyncio.wait(remaining, timeout=CLOSING_S))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self._workers.shutdown(wait=False)
        self.loop.close()


class EventLoop:
    """The loop of an executor's ``async def`` handlers, started by the first of them."""

    def __init__(
        self, after: After | None = None, *, check_s: float = CHECK_S, lost_s: float = LOST_S
    ) -> None:
        """``after`` schedules the check whether a handler blocks the loop; None: no check."""
        self._after = after
        self._check_s = check_s
        self._lost_s = lost_s
        self._lock = threading.Lock()
        self._thread: _LoopThread | None = None
        #: blocked threads that were replaced
        self._lost_threads: list[_LoopThread] = []
        self._running = 0
        self._is_watching = False
        self._is_reported = False
        self._is_closed = False

    def start(self, coroutine: Coroutine[Any, Any, Any], name: str) -> LoopTask:
        """Start a handler's coroutine in a copy of the caller's context; raise RunFailed after the end."""
        with self._lock:
            if self._is_closed:
                coroutine.close()
                raise RunFailed("the executor is stopping")
            if self._thread is None or self._thread.blocked_s > self._lost_s:
                self._replace()
            assert self._thread is not None
            task = LoopTask(self._thread.loop, coroutine, name)
            task.completion.add_done_callback(self._count_end)
            self._thread.loop.call_soon_threadsafe(task.begin)
            self._running += 1
            self._watch()
        return task

    def has_thread(self, thread: threading.Thread) -> bool:
        """Return whether coroutines run in this thread."""
        with self._lock:
            return any(
                loop.is_thread(thread) for loop in (*self._lost_threads, self._thread) if loop is not None
            )

    def stop(self, timeout_s: float = CLOSING_S * 2) -> None:
        """Cancel what still runs and end the loop; later coroutines are refused."""
        with self._lock:
            self._is_closed = True
            threads = [*self._lost_threads, *([self._thread] if self._thread else [])]
            self._thread = None
        for thread in threads:
            thread.stop(timeout_s)

    def _replace(self) -> None:
        if self._thread is not None:
            logger.warning(
                "event loop replaced after %.0f s without an answer; runs on the blocked one are lost",
                self._thread.blocked_s,
            )
            self._lost_threads.append(self._thread)
        self._thread = _LoopThread()
        self._is_reported = False

    def _count_end(self, _: object) -> None:
        with self._lock:
            self._running -= 1

    def _watch(self) -> None:
        if self._after is not None and not self._is_watching:
            self._is_watching = True
            self._after(self._check_s, self._check)

    def _check(self) -> None:
        """Report a handler that blocks the loop, once, and send the next ping."""
        with self._lock:
            thread = self._thread
            self._is_watching = False
            if thread is None or not self._running:
                return
            is_blocked = thread.blocked_s >= self._check_s
            is_new = is_blocked and not self._is_reported
            self._is_reported = is_blocked
            thread.ping()
            self._watch()
        if is_new:
            _report(*thread.blocker())


def _report(owner: Owner | None, stack: list[str]) -> None:
    location = stack[-1].strip().partition("\n")[0] if stack else "unknown place"
    if owner is None:
        logger.warning("event loop blocked by code of no run: async handlers wait; %s", location)
        return
    run, name = owner
    logger.warning(
        "event loop blocked by handler %r job_id=%s log_id=%s: other async handlers wait;"
        " use asyncio.to_thread; %s",
        name,
        run.job_id,
        run.log_id,
        location,
    )
    text = "".join(stack).rstrip("\n")
    note = "this handler blocks the event loop of all async handlers; use asyncio.to_thread"
    run._write(f"{local_stamp(now_ms())} ----------- {note} -----------\n{text}\n")


def _stack_of(frame: FrameType | None) -> list[str]:
    """Return the stack below the loop's own frames."""
    frames = traceback.extract_stack(frame) if frame is not None else []
    loop_frames = [index for index, entry in enumerate(frames) if entry.filename == asyncio.events.__file__]
    return traceback.format_list(frames[loop_frames[-1] + 1 if loop_frames else 0 :])
