"""Program exit: stops executors while their handlers can still start threads.

When ``atexit`` runs, Python refuses new threads and tasks of pools. The only earlier hook is that of
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


class Stoppable(Protocol):
    """Executor; ``stop`` does nothing if it is not started."""

    def stop(self) -> None: ...


_executors: "weakref.WeakSet[Stoppable]" = weakref.WeakSet()
_is_registered: list[bool] = []


def watch(executor: Stoppable) -> None:
    """Call ``stop`` of an executor when the program ends."""
    _executors.add(executor)
    atexit.register(executor.stop)
    if not _is_registered:
        _is_registered.append(True)
        # It is called before the hooks of the pools, which were imported earlier.
        with contextlib.suppress(RuntimeError):  # the main thread has ended already
            register_early(_stop_early)


def forget(executor: Stoppable) -> None:
    """Do not call ``stop`` of an executor any more."""
    _executors.discard(executor)
    atexit.unregister(executor.stop)


def _stop_early() -> None:
    """Stop the executors, unless the program continues in other threads, such as that of a server."""
    if not any(map(_is_working, threading.enumerate())):
        for executor in list(_executors):
            executor.stop()


def _is_working(thread: threading.Thread) -> bool:
    """Return whether the program works in a thread: not if it belongs to a run or is idle in a pool."""
    if thread.daemon or thread in threads_of_runs:
        return False
    if thread in (threading.main_thread(), threading.current_thread()):
        return False
    if is_of_process_pool(thread):
        return bool(getattr(thread, "pending_work_items", ()))
    if not is_of_thread_pool(thread):
        return True
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code is not pool_worker_code() and not is_of_run(frame)
