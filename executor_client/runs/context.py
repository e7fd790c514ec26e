"""Job context: ``context`` gives a handler the parameter, shard, log and result of its run.

It refers to the run of the calling thread or task; threads and tasks that a handler starts inherit it, until
the run ends. Outside a run, ids and shards are -1, the parameter is None, and calls return False.
"""

import json
import logging
import mmap
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any, cast

from executor_client.logs.files import RunLog
from executor_client.logs.lines import LineBuffer
from executor_client.processes.commands import Command, CommandResult, CommandRun, RunningCommands
from executor_client.processes.tree import RunProcesses
from executor_client.wire.clock import local_stamp, now_ms
from executor_client.wire.protocol import FAIL, SUCCESS, TIMEOUT, RunRequest
from executor_client.wire.run_reports import Progress, checkpoint_text
from executor_client.wire.start_zone import start_zone, zone_of

#: longer result messages are truncated, as in XXL-JOB
MESSAGE_MAX = 50_000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

logger = logging.getLogger(__name__)

LineSink = Callable[[str], bool]


class RunEnd:
    """Flag that a run has ended. Without it, the copy of the run in a forked process would never end."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_set = False
        #: shared byte that forked processes read; None before the first fork
        self._memory: mmap.mmap | None = None

    def share(self) -> None:
        """Create the shared flag, before a fork."""
        if self._memory is None:
            self._memory = mmap.mmap(-1, 1)

    def set(self) -> None:
        """End the run; in a forked process, which ends before the run does, for that process only."""
        self._is_set = True
        if self._memory is not None and os.getpid() == self._process:
            self._memory[0] = 1

    def is_set(self) -> bool:
        """Return whether the run has ended."""
        return self._is_set or (self._memory is not None and self._memory[0] == 1)


class JobContext:
    """The current run. Its result is the last one set; none set means success."""

    def __init__(self, request: RunRequest, write: LineSink) -> None:
        self.job_id = request.job_id
        self.param: str | None = request.executor_params
        self.log_id = request.log_id
        #: when the admin triggered the run, UTC epoch milliseconds
        self.log_date_time = request.log_date_time
        self._logical_time = request.logical_time
        self._time_zone = request.time_zone
        self.shard_index = request.broadcast_index
        self.shard_total = request.broadcast_total
        #: set when the run has to end: wait on it instead of sleeping
        self.cancelled = threading.Event()
        self.handle_code = SUCCESS
        self.handle_msg: str | None = None
        self._sink = write
        #: processes of the run that a restarted executor has to end
        self._processes = RunProcesses()
        #: running commands, which this process ends before it exits
        self._commands = RunningCommands()
        #: log behind ``write``, if the handler may fork
        self._log: RunLog | None = None
        #: buffer of the handler's output, while it runs
        self._output: LineBuffer | None = None
        self._end = RunEnd()
        #: last progress, None if the handler reported none
        self.current_progress: Progress | None = None
        self._checkpoint = request.checkpoint or "null"
        #: stores a checkpoint durably; False if that failed
        self.keep_checkpoint: LineSink = lambda text: True
        #: called with each progress, in a child process
        self.report_progress: Callable[[Progress], object] = lambda progress: None

    @property
    def scheduled_at(self) -> datetime:
        """Logical time: the instant that the run stands for, in the time zone of its job.

        That of a scheduled run is its scheduled time, of a retry and a child that of the run before. From an
        older console and from an XXL-JOB admin it is ``log_date_time``, in the zone of this process.
        """
        if self._logical_time is None:
            return _aware(self.log_date_time, start_zone())
        return _aware(self._logical_time, zone_of(self._time_zone) if self._time_zone else start_zone())

    @property
    def logical_date(self) -> date:
        """Date of ``scheduled_at``: the day that the run stands for."""
        return self.scheduled_at.date()

    @property
    def checkpoint(self) -> Any:
        """Last saved checkpoint, initially that of the run that this run repeats; None without any."""
        return json.loads(self._checkpoint)

    def save_checkpoint(self, value: Any) -> bool:
        """Keep a JSON value for the retry of this run, on disk when this returns; None clears it.

        False outside a run, if the run was abandoned, or if it could not be written. Raises ValueError if it
        is not JSON or longer than 4 KiB.
        """
        text = checkpoint_text(value)
        if not self.keep_checkpoint(text):
            return False
        self._checkpoint = text
        return True

    def progress(self, done: float, total: float, text: object = "") -> bool:
        """Show ``done`` of ``total`` steps and a short text on the run's page; may be called often."""
        self.current_progress = Progress.of(done, total, text)
        self.report_progress(self.current_progress)
        return True

    @property
    def idempotency_key(self) -> str:
        """Idempotency key: the same for all deliveries of this run, unique among runs."""
        return f"job-{self.job_id}-log-{self.log_id}-{self.log_date_time}"

    def log(self, message: object, *args: object) -> bool:
        """Write a line into the run's log, ``%``-formatted like ``logging``; False if that failed."""
        return self._write(_line(_format(str(message), args), sys._getframe(1)))

    def log_exception(self, error: BaseException | None = None) -> bool:
        """Write the traceback of an exception, by default of the one being handled, into the run's log."""
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
        """Set the result to timed out; does not end the handler."""
        return self.result(TIMEOUT, msg)

    def result(self, code: int, msg: str | None = None) -> bool:
        """Set a result code, 1 to 2147483647; only 200 is success. Without a message an earlier one stays."""
        self.handle_code = code
        if msg is not None:
            self.handle_msg = str(msg)
        return True

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        check: bool = True,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        input: str | bytes | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a program; both of its outputs go into the run's log line by line, and are returned.

        It is ended, with its descendants, when the run is killed or times out, or after ``timeout`` seconds.
        Raises CommandFailed for an exit code other than 0 (unless ``check`` is False), a timeout or the end
        of the run, RunFailed if the program cannot be started; uncaught, the run fails with their text.
        """
        command = Command(argv, cwd, env, input, timeout)
        run = CommandRun(command, self._write, self.cancelled, self._processes, self._commands)
        return run.wait(check=check)

    def _write(self, line: str) -> bool:
        """Write a line into the log; False after the end of the handler, whose threads may continue."""
        return not self._end.is_set() and self._sink(line)

    def _begin_output(self) -> None:
        """Capture what the handler prints from now on."""
        self._output = LineBuffer(self._write)

    def _end_output(self) -> None:
        """Write unfinished lines and close the log."""
        output, self._output = self._output, None
        if output is not None:
            output.flush()
        self._end.set()

    def _before_fork(self) -> None:
        """Write the first lines of the log, and share the end of the run with the forked process."""
        if self._log is not None:
            self._log.flush()
        self._end.share()

    def _after_fork(self) -> None:
        """Renew, in a forked process, the locks that other threads may have held at the fork."""
        for part in (self._output, self._log):
            if part is not None:
                part.after_fork()


class _NoRun(JobContext):
    """Context outside a run: attributes are -1 or None, without a key; log lines go to the process log."""

    def __init__(self) -> None:
        empty_request = RunRequest(-1, "", "", "", 0, -1, 0, "", "", 0, -1, -1)
        super().__init__(empty_request, _to_process_log)
        self.param = None
        self.keep_checkpoint = lambda text: False

    @property
    def scheduled_at(self) -> datetime:
        """Raise RuntimeError: outside a run there is no instant that it stands for."""
        raise RuntimeError("context.scheduled_at: there is no run here, or it has ended")

    @property
    def idempotency_key(self) -> str:
        """Raise RuntimeError: outside a run all callers would get the same key."""
        raise RuntimeError("context.idempotency_key: there is no run here, or it has ended")

    def progress(self, done: float, total: float, text: object = "") -> bool:
        """Ignore the progress; there is no run."""
        return False

    def result(self, code: int, msg: str | None = None) -> bool:
        """Ignore the result; there is no run."""
        return False


def _to_process_log(line: str) -> bool:
    logger.info("%s", line)
    return False


_current: ContextVar[JobContext | None] = ContextVar("executor_client_run", default=None)
_no_run = _NoRun()


class _Current:
    """Proxy of the run of the calling thread or task."""

    def __getattr__(self, name: str) -> Any:
        # Threads that a killed run has left behind still need its ``cancelled`` event.
        run = _current.get() if name == "cancelled" else current_run()
        return getattr(run or _no_run, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            "context is read-only; use context.success(), fail(), result() or save_checkpoint()"
        )


#: the run of the calling thread or task
context: JobContext = cast(JobContext, _Current())


def current_run() -> JobContext | None:
    """Return the run of the calling thread or task; None outside, and after its end."""
    run = _current.get()
    return None if run is None or run._end.is_set() else run


@contextmanager
def as_current_run(run: JobContext | None) -> Iterator[None]:
    """Make this run the current one inside the ``with`` block; None: no run."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def _aware(at_ms: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(zone)


def _format(message: str, args: tuple[object, ...]) -> str:
    """Format like ``logging``, but never raise: a bad placeholder must not fail a job."""
    if not args:
        return message
    try:
        return message % args
    except (TypeError, ValueError, KeyError):
        return f"{message} {args!r}"


def _line(text: str, frame: Any) -> str:
    """Return ``2024-05-01 03:04:05 [jobs#demo]-[17]-[job-3] text``, the format of XXL-JOB."""
    module = str(frame.f_globals.get("__name__", "?")).rpartition(".")[2]
    location = f"[{module}#{frame.f_code.co_name}]-[{frame.f_lineno}]-[{threading.current_thread().name}]"
    return f"{local_stamp(now_ms())} {location} {text}\n"
