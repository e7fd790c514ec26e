"""Daemon workers: the threads of ``asyncio.to_thread``, which do not keep the process from ending."""

import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from executor_client.runs.context import JobContext, as_current_run, current_run

#: a call, the run it belongs to, and the future of its outcome
_Call = tuple[Callable[[], Any], JobContext | None, "Future[Any]"]


class DaemonWorkers(ThreadPoolExecutor):
    """Pool of daemon threads. Python waits at exit for those of its own pools, which may be blocked.

    It derives from ThreadPoolExecutor because asyncio accepts no other type.
    """

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name)
        self._size = size
        self._name = name
        self._lock = threading.Lock()
        #: None ends a thread
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread_count = 0
        #: threads that wait for a call
        self._idle = 0
        self._is_closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Call a function in a thread, within the run of the caller."""
        future: Future[Any] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the executor is stopping")
            self._calls.put((partial(fn, *args, **kwargs), current_run(), future))
            if self._idle:
                self._idle -= 1
            elif self._thread_count < self._size:
                self._thread_count += 1
                thread = threading.Thread(
                    target=self._work, name=f"{self._name}_{self._thread_count}", daemon=True
                )
                contextvars.Context().run(thread.start)  # an empty context: the thread belongs to no run
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after the queued calls; never wait for them."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._thread_count):
                self._calls.put(None)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            _carry_out(*call)
            del call  # or an idle thread would keep it alive

    def _next(self) -> _Call | None:
        with self._lock:
            try:
                return self._calls.get_nowait()
            except queue.Empty:
                self._idle += 1
        return self._calls.get()


def _carry_out(call: Callable[[], Any], run: JobContext | None, future: "Future[Any]") -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        with as_current_run(run):
            value = call()
    except BaseException as exc:
        future.set_exception(exc)
    else:
        future.set_result(value)
