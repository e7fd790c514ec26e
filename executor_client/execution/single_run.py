"""Single run: the job thread, watchdog and log file of an executor, without port, admin and journal."""

import tempfile
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from executor_client.config.config import Timing
from executor_client.config.script_limits import ScriptLimits
from executor_client.execution.intake import REASON_KILLED
from executor_client.execution.job_thread import JobThread, Owner
from executor_client.execution.metrics import Counters
from executor_client.execution.services import Services
from executor_client.execution.watchdog import Watchdog
from executor_client.handlers.registry import Handler
from executor_client.journal.journal import Journal
from executor_client.runs.run import Run, RunResult, Work
from executor_client.wire.clock import monotonic_s
from executor_client.wire.protocol import RunRequest

#: the defaults of an executor, but the job thread ends after the run
TIMING = Timing(idle_limit_s=0)


@dataclass(frozen=True, slots=True)
class SingleRunOutcome:
    """Outcome of a single run: result, log, error and duration."""

    result: RunResult
    log: str
    error: BaseException | None
    duration_s: float


class _NoJournal:
    """Null journal: a single run is not recovered after a crash."""

    def start(self, run_id: int) -> bool:
        return True

    def record_processes(self, run_id: int, identities: str) -> None:
        pass

    def save_checkpoint(self, run_id: int, text: str) -> bool:
        return True

    def finish(
        self, run_id: int, code: int, msg: str | None, *, now_ms: int, progress: str | None = None
    ) -> Future[None]:
        future: Future[None] = Future()
        future.set_result(None)
        return future


class _SingleThread(JobThread):
    """Job thread of one run. It keeps the exception, and no lines of the executor go into the log."""

    error: BaseException | None = None
    duration_s = 0.0
    is_abandoned = False

    def execute(self, run: Run) -> None:
        """Execute one run in the calling thread, with the handler's hooks."""
        self.push(run)
        self.begin()
        self._main()

    def _call(self, run: Run, work: Work) -> BaseException | None:
        begin_s = monotonic_s()
        self.error = super()._call(run, work)
        self.duration_s = monotonic_s() - begin_s
        return self.error

    def _abandon(self, run: Run, work: Work) -> None:
        self.is_abandoned = True
        super()._abandon(run, work)

    def _line(self, text: str) -> str:
        return ""


def run_once(
    handler: Handler, request: RunRequest, *, kill_after_s: float | None = None, is_cancelled: bool = False
) -> SingleRunOutcome:
    """Execute a request and return when its result is fixed and reported.

    With a time-out or ``kill_after_s`` the handler runs in a thread of its own, which is left behind if it
    cannot be ended; otherwise in the calling one.
    """
    watchdog = Watchdog()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        thread = _SingleThread(request.job_id, handler, _services(watchdog, Path(folder)), _owner())
        run = Run(1, request, Path(folder))
        if is_cancelled:
            run.context.cancelled.set()
        begin_s = monotonic_s()
        if request.executor_timeout or kill_after_s is not None:
            watchdog.start()
            if kill_after_s is not None:
                watchdog.after(kill_after_s, lambda: thread.stop(REASON_KILLED))
            runner = threading.Thread(target=thread.execute, args=(run,), daemon=True)
            runner.start()
            run.end_event.wait()
            if not thread.is_abandoned:
                runner.join()  # its destroy hook
            watchdog.stop()
        else:
            thread.execute(run)
        result = run.result
        assert result is not None, "a reported run has a result"
        duration_s = thread.duration_s or monotonic_s() - begin_s
        return SingleRunOutcome(result, _text_of(run.log.path), thread.error, duration_s)


def _services(watchdog: Watchdog, folder: Path) -> Services:
    journal = cast(Journal, _NoJournal())
    return Services(journal, watchdog, Counters(), TIMING, folder, ScriptLimits(), lambda: None)


def _owner() -> Owner:
    return Owner(retire=lambda _: True, replace=lambda _: None, remove=lambda _: None)


def _text_of(path: Path) -> str:
    """Return the log; empty if the run never started."""
    return path.read_text("utf-8", "replace") if path.exists() else ""
