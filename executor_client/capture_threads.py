"""Threads of a handler: they belong to its run, whether it starts them itself or uses a pool of threads.

Tasks and ``asyncio.to_thread`` copy the context anyway. Of the caller's context a thread gets the run only:
other variables, such as a web framework's request, must not be shared by threads unless their owner wants it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from executor_client.context import JobContext, current_run, entered


class ThreadCapture:
    """Replaces ``threading.Thread.start`` and ``ThreadPoolExecutor.submit``."""

    def __init__(self) -> None:
        self._originals: tuple[Any, Any] = (threading.Thread.start, ThreadPoolExecutor.submit)
        self._installed: tuple[Any, Any] = self._originals

    def install(self) -> None:
        """Replace the methods."""
        self._originals = original_start, original_submit = threading.Thread.start, ThreadPoolExecutor.submit

        def start(self: threading.Thread) -> None:
            run = current_run()
            if run is not None and self.ident is None:
                setattr(self, "run", _within(run, self.run))  # noqa: B010 - mypy refuses the assignment
            original_start(self)

        def submit(
            self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
        ) -> "Future[Any]":
            run = current_run()
            if run is None:
                return original_submit(self, fn, *args, **kwargs)
            with entered(None):  # a thread of the pool outlives the run
                return original_submit(self, _within(run, fn), *args, **kwargs)

        self._installed = (start, submit)
        self._set(*self._installed)

    def remove(self) -> None:
        """Restore the methods, unless another library has replaced them since: that calls ours."""
        if (threading.Thread.start, ThreadPoolExecutor.submit) == self._installed:
            self._set(*self._originals)

    def _set(self, start: Any, submit: Any) -> None:
        setattr(threading.Thread, "start", start)  # noqa: B010
        setattr(ThreadPoolExecutor, "submit", submit)  # noqa: B010


def _within(run: JobContext, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that belongs to a run in whatever thread it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with entered(run):
            return function(*args, **kwargs)

    return call
