"""Child process of a ``process=True`` handler.

``python -m executor_client.execution.child TASK RESULT CHANNEL``: all arguments are open file descriptors.
SIGTERM sets ``context.cancelled`` and, after a grace period, raises JobKilled in the handler. Finally the
parent kills the session.
"""

import importlib
import json
import logging
import os
import runpy
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from executor_client.capture.logging import LoggingCapture, RecordSwitch
from executor_client.capture.streams import StreamCapture
from executor_client.capture.threads import ThreadCapture
from executor_client.config.config import Timing
from executor_client.execution.child_channel import ChildReporter
from executor_client.execution.handler_calls import call_handler, traceback_of
from executor_client.execution.run_kinds import FunctionWork
from executor_client.handlers.registry import Handler, registry
from executor_client.lifecycle import forks
from executor_client.logs.files import RunLog
from executor_client.runs.context import JobContext
from executor_client.runs.run import result_of
from executor_client.wire.errors import ImportedOnly, JobKilled
from executor_client.wire.protocol import RunRequest
from executor_client.wire.start_zone import start_zone

#: module name of the imported main program, as in the processes of ``multiprocessing``
MAIN = "__mp_main__"


def main(task_descriptor: int, result_descriptor: int, channel_descriptor: int) -> None:
    """Read the task, run its handler, write the result."""
    with os.fdopen(task_descriptor, "rb") as stream:
        task = json.loads(stream.read())
    sys.path[:] = task["sys_path"]
    _set_variables(task["variables"])
    log = RunLog(Path(task["log"]))
    log.open()
    context = JobContext(RunRequest.from_wire(task["run"]), log.write)
    context._log = log
    reporter = ChildReporter(channel_descriptor)
    reporter.attach(context)
    _Sigterm(context, task["cooperative_s"])
    _capture(task["log_level"])
    error: BaseException | None = None
    try:
        handler = _find_handler(task)
        error = call_handler(context, FunctionWork(handler, context, Timing()), hooks=handler)
    except BaseException as exc:  # the import of its module failed
        error = exc
        log.write(traceback_of(exc))
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # the handler has ended
    context._commands.end()
    reporter.close()
    result = result_of(context, error)
    with os.fdopen(result_descriptor, "wb") as stream:
        stream.write(json.dumps({"code": result.code, "msg": result.msg}).encode())


def _set_variables(originals: dict[str, str | None]) -> None:
    """Set the executor's own variables for the handler: PYTHONPATH without the path of this package, TZ."""
    start_zone()  # before TZ changes, because the run's log keeps the executor's zone
    for name, value in originals.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    time.tzset()


def _find_handler(task: dict[str, Any]) -> Handler:
    """Import the handler's module as the parent did and return the handler."""
    name = MAIN if task["module"] == "__main__" else task["module"]
    if task["django"]:  # before the import of the handler, which may import models
        with suppress(ImportedOnly):  # raised by an app that starts the executor
            importlib.import_module("django").setup()
    try:
        if task["main"]:
            names = runpy.run_module(task["main"], run_name=name, alter_sys=True)
        elif task["main_path"]:
            names = runpy.run_path(task["main_path"], run_name=name)
        else:
            names = vars(importlib.import_module(name))
    except ImportedOnly as exc:  # raised where the program starts the executor, after defining its handlers
        scopes = [frame.f_globals for frame, _ in traceback.walk_tb(exc.__traceback__)]
        names = next((scope for scope in scopes if scope.get("__name__") == name), {})
    _keep_module(name, names)
    handler = registry.find(task["handler"])
    return handler or Handler(task["handler"], names[task["qualname"]])


def _keep_module(name: str, names: dict[str, Any]) -> None:
    """Keep the handler's module where pickle and the processes of ``multiprocessing`` look for it."""
    module = ModuleType(name)
    vars(module).update(names)
    if name == MAIN:
        sys.modules["__main__"] = sys.modules[name] = module
    elif names:
        sys.modules.setdefault(name, module)


def _capture(level: int | None) -> None:
    """Capture what the handler prints and logs; None: ``logging`` is not copied into the run's log."""
    record_switch = RecordSwitch()
    if level is not None:
        record_switch.install()
        logging.getLogger().setLevel(level)
    # The program's own logging handlers would write copied records again: their stderr is the run's log too.
    for part in (ThreadCapture(), LoggingCapture(record_switch), StreamCapture(logging_writes=level is None)):
        part.install()


class _Sigterm:
    """SIGTERM handler: sets ``context.cancelled``, and raises JobKilled in the handler a moment later."""

    def __init__(self, context: JobContext, cooperative_s: float) -> None:
        self._cancel_event = context.cancelled
        self._cooperative_s = cooperative_s
        signal.signal(signal.SIGTERM, self._cancel)
        signal.signal(signal.SIGALRM, self._kill)
        forks.watch(self)

    def after_fork(self) -> None:
        """Restore the default action, so that a signal ends a process that the handler has forked at once."""
        for number in (signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)

    def _cancel(self, number: int, frame: FrameType | None) -> None:
        self._cancel_event.set()
        signal.setitimer(signal.ITIMER_REAL, max(self._cooperative_s, 0.001))

    def _kill(self, number: int, frame: FrameType | None) -> None:
        raise JobKilled


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
