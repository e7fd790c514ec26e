"""Forks: a forked process drops the sockets, locks and threads of the executors that were started before.

Servers such as gunicorn with ``--preload`` import the application first and fork their workers then.
"""

import codecs
import os
import signal
import threading
import weakref
from typing import Any, Protocol

from executor_client.runs.context import current_run


class Started(Protocol):
    """Executor, or its signals, of the process before the fork."""

    def forked(self) -> None: ...


_started: "weakref.WeakSet[Started]" = weakref.WeakSet()
#: objects of the process before the fork that must not be closed here, such as its database connections
_kept: list[Any] = []
_registered: list[bool] = []
#: signals that end an executor or a run
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
#: codecs that Python imports at first use
_CODECS = ("idna", "utf-8-sig")


class _Thread(threading.local):
    #: blocked signals before a fork; None: a server in C has forked without its announcement
    mask: set[Any] | None = None


_thread = _Thread()


def prepare() -> None:
    """Import what threads of an executor would import: a process forked meanwhile finds the import locked."""
    import certifi

    for codec in _CODECS:
        codecs.lookup(codec)
    certifi.where()


def watch(executor: Started) -> None:
    """Call ``forked`` of an executor in every process that this one forks."""
    _started.add(executor)
    if not _registered:
        _registered.append(True)
        os.register_at_fork(before=_before, after_in_parent=_unblock, after_in_child=_forked)


def keep(part: Any) -> None:
    """Keep an object alive, so that it is not closed."""
    _kept.append(part)


def _before() -> None:
    """Prepare the forking run: both processes would write the lines that its log begins with.

    Signals wait until the new process has its own handlers.
    """
    run = current_run()
    if run is not None:
        run._before_fork()
    _thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _unblock() -> None:
    if _thread.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _thread.mask)


def _forked() -> None:
    run = current_run()
    if run is not None:
        run._forked()
    for executor in list(_started):
        executor.forked()
    _unblock()
