"""Capture in threads: threads and pools that a handler uses belong to its run.

Tasks and ``asyncio.to_thread`` copy the context anyway. A thread inherits only the run of its caller: other
context variables, such as a web framework's request, may not be safe to share between threads.
"""

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from types import FrameType
from typing import Any

from executor_client.runs.context import JobContext, as_current_run, current_run

#: methods of a ThreadPool that call their first argument in its threads; all others call one of these
_POOL_METHODS = ("apply_async", "_map_async", "imap", "imap_unordered")
#: methods to replace, with their classes
_METHODS = (
    (threading.Thread, "start"),
    (ThreadPoolExecutor, "submit"),
    *((ThreadPool, name) for name in _POOL_METHODS),
)
#: threads that handlers have started
threads_of_runs: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()


class ThreadCapture:
    """Replaces ``Thread.start``, ``ThreadPoolExecutor.submit`` and the methods of a ThreadPool."""

    def __init__(self) -> None:
        self._originals = _methods()
        self._replacements = self._originals

    def install(self) -> None:
        """Replace the methods."""
        self._originals = original_start, original_submit, *pool_methods = _methods()

        def start(self: threading.Thread) -> None:
            run = current_run()
            if run is not None and self.ident is None:
                setattr(self, "run", _within(run, self.run))  # noqa: B010 - mypy refuses the assignment
                threads_of_runs.add(self)
            original_start(self)

        def submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            run = current_run()
            if run is None:
                return original_submit(self, fn, *args, **kwargs)
            with as_current_run(None):  # a thread of the pool outlives the run
                return original_submit(self, _within(run, fn), *args, **kwargs)

        self._replacements = [start, submit, *map(_of_caller, pool_methods)]
        _set(self._replacements)

    def remove(self) -> None:
        """Restore the methods, unless another library has replaced them since: that calls ours."""
        if _methods() == self._replacements:
            _set(self._originals)


def _methods() -> list[Any]:
    return [getattr(owner, name) for owner, name in _METHODS]


def _set(methods: list[Any]) -> None:
    for (owner, name), method in zip(_METHODS, methods, strict=True):
        setattr(owner, name, method)


def _of_caller(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a ThreadPool whose function belongs to the caller's run.

    The threads of the pool belong to the run that has made it.
    """

    def method(self: ThreadPool, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return original(self, _within(current_run(), func), *args, **kwargs)

    return method


def _within(run: JobContext | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that belongs to a run, or to none, in whatever thread it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with as_current_run(run):
            return function(*args, **kwargs)

    return call


_OF_RUN = _within(None, print).__code__


def is_of_run(frame: FrameType | None) -> bool:
    """Return whether a thread works for a run; ``frame`` is its current one."""
    while frame is not None and frame.f_code is not _OF_RUN:
        frame = frame.f_back
    return frame is not None
