"""Private names of the standard library: each is used in one function here, and may be absent.

Which names of waitress the classes of ``httpd`` replace or use is in the test of this module.
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


def is_of_process_pool(each: threading.Thread) -> bool:
    """Whether a thread manages a pool of processes."""
    return each in getattr(process, "_threads_wakeups", ())


def is_of_thread_pool(each: threading.Thread) -> bool:
    """Whether a thread is a worker of a pool of threads."""
    return each in getattr(thread, "_threads_queues", ())


def pool_worker_code() -> CodeType:
    """Return the code of a pool's thread, which is what one without a task runs."""
    return thread._worker.__code__
