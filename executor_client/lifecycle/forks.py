"""Fork handling: after a fork, the child drops the parent's sockets, locks and threads.

Servers such as gunicorn with ``--preload`` import the application first and fork their workers then.
"""

import codecs
import os
import signal
import threading
import weakref
from typing import Any, Protocol

from executor_client.runs.context import current_run


class ForkObserver(Protocol):
    """Executor, or its signals, of the parent process."""

    def after_fork(self) -> None: ...


_executors: "weakref.WeakSet[ForkObserver]" = weakref.WeakSet()
#: references to objects of the parent that must not be closed in the child, such as database connections
_references: list[Any] = []
_is_registered: list[bool] = []
#: signals that end an executor or a run
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
#: codecs that Python imports at first use
_CODECS = ("idna", "utf-8-sig")


class _Thread(threading.local):
    #: signal mask before a fork; None: a server in C has forked without calling the hooks
    mask: set[Any] | None = None


_thread = _Thread()


def prepare() -> None:
    """Import modules that an executor's threads need: a fork during an import would leave its lock held."""
    import certifi

    for codec in _CODECS:
        codecs.lookup(codec)
    certifi.where()


def watch(executor: ForkObserver) -> None:
    """Call ``after_fork`` of an executor in every process that this one forks."""
    _executors.add(executor)
    if not _is_registered:
        _is_registered.append(True)
        os.register_at_fork(before=_before, after_in_parent=_unblock, after_in_child=_after_fork)


def keep(part: Any) -> None:
    """Keep an object of the parent alive, so that it is not closed."""
    _references.append(part)


def _before() -> None:
    """Flush the log of the forking run, whose first lines both processes would write, and block signals.

    Signals are blocked until the child has its own handlers.
    """
    run = current_run()
    if run is not None:
        run._before_fork()
    _thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _unblock() -> None:
    if _thread.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _thread.mask)


def _after_fork() -> None:
    run = current_run()
    if run is not None:
        run._after_fork()
    for executor in list(_executors):
        executor.after_fork()
    _unblock()
