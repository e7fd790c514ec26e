"""Run: an accepted run with its context, log and result."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from executor_client.logs.files import RunLog, log_file
from executor_client.runs.context import MESSAGE_MAX, JobContext, LineSink
from executor_client.wire.errors import Interruption, RunFailed
from executor_client.wire.protocol import FAIL, RunRequest

#: largest result code that admins can store
CODE_MAX = 2**31 - 1
MSG_RESULT_LOST = "job handle result lost."


@dataclass(frozen=True, slots=True)
class RunResult:
    """Reported result of a run: code (200, 500, 502 or a handler's own) and message."""

    code: int
    msg: str | None


class Work(Protocol):
    """Execution of a handler: in the job thread or as a child process."""

    #: grace period after ``cancel``, in seconds
    grace_s: float

    def run(self) -> None:
        """Execute in the calling thread; any exception is a failure."""

    def cancel(self, kind: type[Interruption]) -> None:
        """Request the end. Called once, from another thread."""

    def force(self, kind: type[Interruption]) -> None:
        """Force the end. Called repeatedly, from another thread."""

    def stack(self) -> list[str]:
        """Return where it is, a text for each frame, from another thread; empty if unknown."""


class Run:
    """Accepted run. Its result is frozen once, by the end of the handler, a timeout or a kill."""

    def __init__(self, run_id: int, request: RunRequest, log_root: Path, *, starts: bool = False) -> None:
        """``starts``: it is STARTED in the journal already, because nothing is before it."""
        self.run_id = run_id
        #: whether it is STARTED in the journal
        self.starts = starts
        self.request = request
        self.log = RunLog(log_file(log_root, request.log_id, request.log_date_time))
        #: stores a checkpoint durably; False if that failed
        self.keep_checkpoint: LineSink = lambda text: True
        self._lock = threading.Lock()
        # Created on demand, because thousands of runs may be queued.
        self._context: JobContext | None = None
        self._end_event: threading.Event | None = None
        self._has_ended = False
        self._result: RunResult | None = None
        self._work: Work | None = None
        self._is_reported = False

    @property
    def context(self) -> JobContext:
        """What the handler sees of the run."""
        with self._lock:
            if self._context is None:
                self._context = JobContext(self.request, self.log.write)
                self._context.keep_checkpoint = self.keep_checkpoint
                self._context._log = self.log
            return self._context

    @property
    def end_event(self) -> threading.Event:
        """Event that is set when the run has ended or was abandoned."""
        with self._lock:
            if self._end_event is None:
                self._end_event = threading.Event()
                if self._has_ended:
                    self._end_event.set()
            return self._end_event

    def end(self) -> None:
        """Set ``end_event``."""
        with self._lock:
            self._has_ended = True
            if self._end_event is not None:
                self._end_event.set()

    @property
    def result(self) -> RunResult | None:
        """Frozen result, None while the run is open."""
        with self._lock:
            return self._result

    def start(self, work: Work) -> bool:
        """Attach the work; False if the run has a result already and must not start."""
        with self._lock:
            if self._result is None:
                self._work = work
            return self._result is None

    def freeze(self, result: RunResult) -> bool:
        """Set the result; True for the first caller, whose result is kept."""
        with self._lock:
            if self._result is None:
                self._result = _truncate(result)
                return True
            return False

    def abort(self, result: RunResult) -> Work | None:
        """Freeze the result from another thread; return the work to end, None if there is none."""
        return self._work if self.freeze(result) else None

    def settle(self, error: BaseException | None) -> RunResult:
        """Freeze the result of the handler; return the one that was frozen first."""
        result = result_of(self.context, error)
        self.freeze(result)
        return self.result or result

    def mark_reported(self) -> bool:
        """Mark the run as reported; True for exactly one caller."""
        with self._lock:
            first, self._is_reported = not self._is_reported, True
        return first


def describe(error: BaseException) -> str:
    """Describe an exception by the first line of its text: ``ValueError: bad day (jobs.py:12)``."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    location = (
        f" ({Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno})" if frame is not None else ""
    )
    text = _text_of(error).strip().partition("\n")[0].rstrip()
    return f"{type(error).__name__}{': ' if text else ''}{text}{location}"


def _text_of(error: BaseException) -> str:
    """Return the text of an exception; "" if its ``__str__`` fails."""
    try:
        return str(error)
    except BaseException:
        return ""


def result_of(context: JobContext, error: BaseException | None) -> RunResult:
    """Return the result of a handler: the error it raised, else the result it set, else success."""
    if error is not None:
        text = _text_of(error) if isinstance(error, RunFailed) else ""
        return RunResult(FAIL, text or describe(error))
    code = context.handle_code
    if not isinstance(code, int) or isinstance(code, bool) or not 0 < code <= CODE_MAX:
        return RunResult(FAIL, MSG_RESULT_LOST)
    return RunResult(code, context.handle_msg)


def _truncate(result: RunResult) -> RunResult:
    """Truncate a long message and replace characters that cannot be stored or sent."""
    if result.msg is None:
        return result
    msg = result.msg.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")
    return RunResult(result.code, msg[:MESSAGE_MAX] + "..." if len(msg) > MESSAGE_MAX else msg)
