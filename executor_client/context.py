"""What a handler sees of its run: ``context.param``, ``context.log(…)``, ``context.fail(…)``.

``context`` stands for the run of the calling thread or task. Tasks and ``asyncio.to_thread`` inherit it; a thread of your own does with
``threading.Thread(target=contextvars.copy_context().run, args=(function,))``. Outside a run it says so: ids and shards are -1, the
parameter is None, and calls return False.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from executor_client.clock import local_stamp, now_ms
from executor_client.protocol import FAIL, SUCCESS, TIMEOUT, RunRequest

#: results longer than this are cut, as in the original
MESSAGE_MAX = 50_000

logger = logging.getLogger(__name__)

LineSink = Callable[[str], bool]


class JobContext:
    """One run, as its handler sees it. The result is the last one set; nothing set means success."""

    def __init__(self, request: RunRequest, write: LineSink) -> None:
        self.job_id = request.job_id
        self.param: str | None = request.executor_params
        self.log_id = request.log_id
        #: when the admin triggered the run, UTC epoch milliseconds
        self.log_date_time = request.log_date_time
        self.shard_index = request.broadcast_index
        self.shard_total = request.broadcast_total
        #: set as soon as the run shall end: wait on it instead of sleeping
        self.cancelled = threading.Event()
        self.handle_code = SUCCESS
        self.handle_msg: str | None = None
        self._write = write

    @property
    def idempotency_key(self) -> str:
        """A text that is the same for every attempt to deliver this run, and for no other run."""
        return f"job-{self.job_id}-log-{self.log_id}-{self.log_date_time}"

    def log(self, message: object, *args: object) -> bool:
        """Write a line into the run's log, ``%``-formatted like ``logging``; False if it could not be written."""
        return self._write(_line(_formatted(str(message), args), sys._getframe(1)))

    def log_exception(self, error: BaseException | None = None) -> bool:
        """Write the traceback of an exception, by default the one being handled."""
        error = error or sys.exc_info()[1]
        text = "".join(traceback.format_exception(error)) if error else "no exception"
        return self._write(_line(text.rstrip("\n"), sys._getframe(1)))

    def success(self, msg: str | None = None) -> bool:
        """Set the result to success; does not end the handler."""
        return self.result(SUCCESS, msg)

    def fail(self, msg: str | None = None) -> bool:
        """Set the result to failure; does not end the handler."""
        return self.result(FAIL, msg)

    def timeout(self, msg: str | None = None) -> bool:
        """Set the result to "took too long"; does not end the handler."""
        return self.result(TIMEOUT, msg)

    def result(self, code: int, msg: str | None = None) -> bool:
        """Set any result code (1 to 2147483647; only 200 counts as success); no message leaves an earlier one in place."""
        self.handle_code = code
        if msg is not None:
            self.handle_msg = str(msg)
        return True


class _NoRun(JobContext):
    """Stands where no run is: everything is -1 or None, text goes to the process log."""

    def __init__(self) -> None:
        nothing = RunRequest(-1, "", "", "", 0, -1, 0, "", "", 0, -1, -1)
        super().__init__(nothing, _to_process_log)
        self.param = None

    def result(self, code: int, msg: str | None = None) -> bool:
        """Refuse: there is no run."""
        return False


def _to_process_log(line: str) -> bool:
    logger.info("%s", line)
    return False


_current: ContextVar[JobContext | None] = ContextVar("executor_client_run", default=None)
_no_run = _NoRun()


class _Current:
    """Passes every access on to the run of the calling thread or task."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_current.get() or _no_run, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("context cannot be changed; use context.success(), fail() or result()")


#: the run of the calling thread or task
context: JobContext = cast(JobContext, _Current())


def current_run() -> JobContext | None:
    """Return the run of the calling thread or task, None outside."""
    return _current.get()


@contextmanager
def entered(run: JobContext) -> Iterator[None]:
    """Make this run the current one inside the ``with`` block."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


class JobLogHandler(logging.Handler):
    """Copies what a handler logs by ``logging`` into its run's log; records outside a run are left alone."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; never raises."""
        run = current_run()
        if run is None or record.name.partition(".")[0] in ("executor_client", "waitress"):
            self._pass_on(record)
            return
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            place = f"[{record.module}#{record.funcName}]-[{record.lineno}]-[{record.threadName}]"
            run._write(f"{local_stamp(now_ms())} {place} {record.levelname} {text}\n")
        except Exception:
            self.handleError(record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        """Where this is the root logger's only handler, do what ``logging`` would do if there were none."""
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and logging.getLogger().handlers == [self]:
            last.handle(record)


def _formatted(message: str, args: tuple[object, ...]) -> str:
    """Format like ``logging``, but never raise: a wrong placeholder must not fail a job."""
    if not args:
        return message
    try:
        return message % args
    except (TypeError, ValueError, KeyError):
        return f"{message} {args!r}"


def _line(text: str, frame: Any) -> str:
    """Return ``2024-05-01 03:04:05 [jobs#demo]-[17]-[job-3] text``, the original's shape."""
    module = str(frame.f_globals.get("__name__", "?")).rpartition(".")[2]
    place = f"[{module}#{frame.f_code.co_name}]-[{frame.f_lineno}]-[{threading.current_thread().name}]"
    return f"{local_stamp(now_ms())} {place} {text}\n"
