"""Private names of the standard library, which may be absent: each is used in one function here.

The names of waitress that the classes of ``httpd`` replace or use are listed in the test of this module.
"""

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import process, thread
from types import CodeType


def register_early(function: Callable[[], None]) -> None:
    """Call a function when the main thread ends, before the pools refuse tasks; at the latest by ``atexit``.

    Raises RuntimeError if the main thread has ended already.
    """
    getattr(threading, "_register_atexit", atexit.register)(function)


def is_of_process_pool(candidate: threading.Thread) -> bool:
    """Whether a thread manages a pool of processes."""
    return candidate in getattr(process, "_threads_wakeups", ())


def is_of_thread_pool(candidate: threading.Thread) -> bool:
    """Whether a thread is a worker of a pool of threads."""
    return candidate in getattr(thread, "_threads_queues", ())


def pool_worker_code() -> CodeType:
    """Return the code that an idle thread of a pool runs."""
    return thread._worker.__code__
