"""Capture of ``logging``: copies a run's records into its log, even those that the program itself discards.

A logger without its own level logs from INFO on into the log of the run, whatever the root logger's level, so
that nothing is lost under Flask and gunicorn, which leave that at WARNING. The program's own handlers get
exactly the records that they would get without an executor.
"""

import logging
import traceback
from typing import Any

from executor_client.capture.streams import logging_writes, this_thread
from executor_client.runs.context import JobContext, current_run
from executor_client.wire.clock import local_stamp, now_ms

#: loggers whose records are about the executor, not about the run
OWN = ("executor_client", "waitress")
#: lowest level in a run's log, unless the root logger has a lower one
RUN_LEVEL = logging.INFO


class JobLogHandler(logging.Handler):
    """Logging handler: copies a job handler's records into its run's log; ignores records outside a run.

    A started executor does the same without it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; never raises."""
        run = _logging_run(record.name)
        if run is None:
            self._pass_on(record)
        else:
            run._write(_line_of(record))

    def _pass_on(self, record: logging.LogRecord) -> None:
        """Write to stderr as ``logging`` does without handlers, if this is the root logger's only handler."""
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and logging.getLogger().handlers == [self]:
            last.handle(record)


def _logging_run(name: str) -> JobContext | None:
    """Return the run whose log gets the records of a logger; None for the program's own."""
    if this_thread.logging or name.partition(".")[0] in OWN:
        return None
    return current_run()


def _line_of(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # a wrong placeholder must not fail a job
        text = f"{record.msg} {record.args!r}"
    if record.exc_info:
        text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
    if record.stack_info:
        text += "\n" + record.stack_info
    place = f"[{record.module}#{record.funcName}]-[{record.lineno}]-[{record.threadName}]"
    return f"{local_stamp(now_ms())} {place} {record.levelname} {text}\n"


class RecordSwitch:
    """Switch of the copies of records into the logs of runs."""

    def __init__(self) -> None:
        self.is_on = False

    def install(self) -> None:
        """Switch it on."""
        self.is_on = True

    def remove(self) -> None:
        """Switch it off."""
        self.is_on = False


class LoggingCapture:
    """Replaces two methods of ``logging.Logger``: the check of a level, and the call of the handlers."""

    def __init__(self, record_switch: RecordSwitch) -> None:
        self._record_switch = record_switch
        self._originals: tuple[Any, Any] = (logging.Logger.isEnabledFor, logging.Logger.callHandlers)
        self._replacements = self._originals

    def install(self) -> None:
        """Replace the methods."""
        self._originals = logging.Logger.isEnabledFor, logging.Logger.callHandlers
        original_check, original_call = self._originals
        record_switch = self._record_switch

        def is_enabled_for(self: logging.Logger, level: int) -> bool:
            return original_check(self, level) or (
                record_switch.is_on
                and level >= RUN_LEVEL
                and _logging_run(self.name) is not None
                and _inherits_level(self, level)
            )

        def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
            run = _logging_run(record.name)
            if run is None:
                original_call(self, record)
                return
            if record_switch.is_on:
                run._write(_line_of(record))
            if original_check(self, record.levelno):
                with logging_writes():
                    original_call(self, record)

        self._replacements = (is_enabled_for, call_handlers)
        self._set(*self._replacements)

    def remove(self) -> None:
        """Restore the methods, unless another library has replaced them since: that calls ours."""
        if (logging.Logger.isEnabledFor, logging.Logger.callHandlers) == self._replacements:
            self._set(*self._originals)

    def _set(self, check: Any, call: Any) -> None:
        setattr(logging.Logger, "isEnabledFor", check)  # noqa: B010 - mypy refuses the assignment
        setattr(logging.Logger, "callHandlers", call)  # noqa: B010


def _inherits_level(logger: logging.Logger, level: int) -> bool:
    """Return whether only the root logger's level, which is not meant for runs, suppresses a record."""
    if logger.disabled or logger.manager.disable >= level:
        return False
    current: logging.Logger | None = logger
    while current is not None and current.parent is not None:
        if current.level:
            return False
        current = current.parent
    return True
