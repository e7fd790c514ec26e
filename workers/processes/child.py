"""Child process: sets up signals, logging and engine, runs one part, shuts down in order.

On Linux a child is forked from the supervisor, so that all processes share the memory of the program. That
needs a supervisor without threads and without connections, and it keeps the program that was started when
the files have changed since. On macOS, whose libraries do not survive a fork, a child is spawned.
"""

import logging
import multiprocessing
import os
import signal
import sys
import threading
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.clock import Millis
from app.database.engine import bind_engine, follow_move, unbind_engine
from app.database.faults import fault_log
from app.database.promotion_mark import when_moved
from app.errors import NotConfigured
from app.runtime import metrics
from app.runtime.logging import set_up_logging
from app.runtime.program import end_with_parent
from app.settings.config import Config
from workers import archiver, monitor, scheduler
from workers.liveness import Pulse
from workers.loop import Loop

logger = logging.getLogger(__name__)

#: whether a child is forked; otherwise it is spawned
FORKED = sys.platform == "linux"
#: signals that a child awaits
SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
#: name of a child -> the function it runs until its stop event is set
PARTS = {"scheduler": scheduler.run, "archiver": archiver.run, "monitor": monitor.run}


def run_child(name: str, config: Config, pulse: Pulse) -> None:
    """Run one part until SIGTERM; the target of a new process, hence a function of plain values.

    Signals are blocked since the start and awaited with ``sigwait`` in the main thread: no code runs in a
    signal handler.
    """
    _follow_parent()
    metrics.reset()
    set_up_logging(config.log_level, config.log_format)
    bind_engine(config)
    when_moved(partial(_change_database, config))
    stop = threading.Event()
    part = threading.Thread(target=_run_part, args=(name, config, stop, pulse), name=name)
    part.start()
    Loop("metrics", partial(_write_metrics, config, name)).start()
    signal.sigwait({signal.SIGTERM})
    stop.set()
    part.join()
    unbind_engine()
    logging.shutdown()
    os._exit(0)  # A probe or mail that waits must not keep the process alive.


def _run_part(name: str, config: Config, stop: threading.Event, pulse: Pulse) -> None:
    try:
        PARTS[name](config, stop, pulse)
    except DBAPIError as exc:  # It is started again, until the database is back.
        fault_log.write(logger, f"child failed name={name}", exc)
        os._exit(1)
    except Exception:
        logger.exception("child failed name=%s", name)
        os._exit(1)


def _write_metrics(config: Config, name: str, _at_ms: Millis) -> Millis:
    metrics.write_snapshot(config.home, name)
    return metrics.WRITE_PERIOD_MS


def _change_database(config: Config) -> None:
    """Go on with the database that the configured one has moved to, or end, for a new start there."""
    try:
        follow_move(config)
    except NotConfigured:
        logger.exception("database moved, but the new one cannot be used")
        os._exit(1)


def _follow_parent() -> None:
    """End this child with SIGTERM when its supervisor has exited, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if not FORKED:
        threading.Thread(target=_await_end, args=(parent,), name="parent-watch", daemon=True).start()
        return
    end_with_parent()
    if os.getppid() != parent.pid:  # The parent has ended before.
        os.kill(os.getpid(), signal.SIGTERM)


def _await_end(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _new_process(**arguments: Any) -> BaseProcess:
    if FORKED:
        return multiprocessing.get_context("fork").Process(**arguments)
    return multiprocessing.get_context("spawn").Process(**arguments)


def start_child(name: str, config: Config, pulse: Pulse, *, daemon: bool = False) -> BaseProcess:
    """Start a child; a signal sent to it at once waits until the child awaits it.

    ``daemon``: it is terminated when this process ends in order.
    """
    process = _new_process(target=run_child, args=(name, config, pulse), name=name, daemon=daemon)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process
