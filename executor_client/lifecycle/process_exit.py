"""Exits: started executors stop when their program ends, while their handlers can still start threads.

When ``atexit`` runs, Python refuses new threads and the tasks of pools. Before that is only a hook of
``threading``, which the pools themselves use.
"""

import atexit
import contextlib
import sys
import threading
import weakref
from typing import Protocol

from executor_client.capture.threads import is_of_run, threads_of_runs
from executor_client.compat import is_of_process_pool, is_of_thread_pool, pool_worker_code, register_early


class Started(Protocol):
    """Executor; ``stop`` does nothing if it is not started."""

    def stop(self) -> None: ...


_started: "weakref.WeakSet[Started]" = weakref.WeakSet()
_registered: list[bool] = []


def watch(executor: Started) -> None:
    """Call ``stop`` of an executor when the program ends."""
    _started.add(executor)
    atexit.register(executor.stop)
    if not _registered:
        _registered.append(True)
        # called before the hooks of the pools, which were imported earlier
        with contextlib.suppress(RuntimeError):  # the main thread has ended already
            register_early(_stop_early)


def forget(executor: Started) -> None:
    """Call it no more."""
    _started.discard(executor)
    atexit.unregister(executor.stop)


def _stop_early() -> None:
    """Stop the executors, unless the program goes on in other threads, such as that of a server."""
    if not any(map(_goes_on, threading.enumerate())):
        for executor in list(_started):
            executor.stop()


def _goes_on(each: threading.Thread) -> bool:
    """Return whether the program works in a thread: not for a run, nor in one of a pool that has no work."""
    if each.daemon or each in threads_of_runs:
        return False
    if each in (threading.main_thread(), threading.current_thread()):
        return False
    if is_of_process_pool(each):
        return bool(getattr(each, "pending_work_items", ()))
    if not is_of_thread_pool(each):
        return True
    frame = sys._current_frames().get(each.ident or 0)
    return frame is not None and frame.f_code is not pool_worker_code() and not is_of_run(frame)
