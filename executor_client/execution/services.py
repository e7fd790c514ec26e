"""Services of a running executor, shared by its job threads, and the termination of runs."""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from executor_client.config.config import Timing
from executor_client.config.script_limits import ScriptLimits
from executor_client.execution.event_loop import EventLoop
from executor_client.execution.metrics import Counters
from executor_client.execution.watchdog import Watchdog
from executor_client.journal.journal import Journal
from executor_client.processes.commands import RunningCommands
from executor_client.runs.run import Run, RunResult, Work
from executor_client.wire.callbacks import CallbackItem
from executor_client.wire.clock import monotonic_s, now_ms
from executor_client.wire.errors import Interruption, JournalUnavailable
from executor_client.wire.protocol import SUCCESS

#: a handler that does not end is interrupted again at this period
FORCE_PERIOD_S = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """Ended run, whose result is being stored."""

    job_id: int
    result: CallbackItem
    storage: "Future[None]"
    #: False: if its result is not stored, the next start of the executor runs it
    is_started: bool

    def __str__(self) -> str:
        return f"job_id={self.job_id} log_id={self.result.log_id} code={self.result.handle_code}"


@dataclass(frozen=True, slots=True)
class Services:
    """Journal, watchdog, counters and settings of an executor."""

    journal: Journal
    watchdog: Watchdog
    counters: Counters
    timing: Timing
    log_root: Path
    script_limits: ScriptLimits
    #: called when a result is on disk
    result_stored: Callable[[], None]
    #: loop of the ``async def`` handlers; None: one for each run
    event_loop: EventLoop | None = None
    #: running commands of the handlers in this process
    commands: RunningCommands = field(default_factory=RunningCommands)
    #: runs that have ended and are still to be logged
    ended_runs: deque[EndedRun] = field(default_factory=deque)
    #: runs whose results could not be stored
    lost_runs: list[EndedRun] = field(default_factory=list)

    def report(self, run: Run, result: RunResult) -> bool:
        """Store a run's result; True for the first caller, later ones do nothing."""
        if not run.mark_reported():
            return False
        progress = run.context.current_progress
        text = progress.to_text() if progress is not None else None
        storage = self.journal.finish(run.run_id, result.code, result.msg, now_ms=now_ms(), progress=text)
        run.log.close()
        run.end()
        self.counters.add("runs_succeeded" if result.code == SUCCESS else "runs_failed")
        request = run.request
        item = CallbackItem(request.log_id, request.log_date_time, result.code, result.msg, progress=text)
        self.ended_runs.append(EndedRun(request.job_id, item, storage, run.starts))
        storage.add_done_callback(self.log_ended)
        return True

    def log_ended(self, _: object = None) -> None:
        """Log the ended runs of a commit in one line, so that no job waits for the log."""
        ended_runs: list[EndedRun] = []
        lost_runs: list[EndedRun] = []
        with contextlib.suppress(IndexError):
            while True:
                run = self.ended_runs.popleft()
                if not run.storage.done():  # it is in a later commit
                    self.ended_runs.appendleft(run)
                    break
                (lost_runs if run.storage.exception() else ended_runs).append(run)
        if ended_runs:
            logger.info("run ended %s", "; ".join(map(str, ended_runs)))
        if lost_runs:
            self.lost_runs.extend(lost_runs)
            logger.error("result not stored %s", "; ".join(map(str, lost_runs)))
        self.result_stored()

    def keep_checkpoint(self, run: Run, text: str) -> bool:
        """Store a checkpoint of a run; False if it has a result or the journal cannot be written."""
        try:
            return self.journal.save_checkpoint(run.run_id, text)
        except JournalUnavailable as exc:
            logger.warning("checkpoint not stored log_id=%s error=%s", run.request.log_id, exc)
            return False


class Termination:
    """Termination of a run: cancel it, then force it, finally abandon it. Runs in the watchdog thread."""

    def __init__(
        self,
        run: Run,
        work: Work,
        kind: type[Interruption],
        services: Services,
        abandon: Callable[[Run, Work], None],
    ) -> None:
        self._run = run
        self._work = work
        self._kind = kind
        self._services = services
        self._abandon = abandon
        self._started_s = monotonic_s()

    def start(self) -> None:
        """Cancel the run and schedule the next steps."""
        self._run.context.cancelled.set()
        self._work.cancel(self._kind)
        self._services.watchdog.after(self._work.grace_s, self._force)

    def _force(self) -> None:
        if self._run.end_event.is_set():
            return
        if monotonic_s() - self._started_s >= self._work.grace_s + self._services.timing.abandon_s:
            # In its own thread, because it takes a lock that may be held during a commit.
            arguments = (self._run, self._work)
            threading.Thread(target=self._abandon, args=arguments, name="abandon", daemon=True).start()
            return
        self._work.force(self._kind)
        self._services.watchdog.after(min(FORCE_PERIOD_S, self._services.timing.abandon_s), self._force)
