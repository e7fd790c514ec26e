"""Shared parts of a running executor, and the termination of runs."""

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
class Ended:
    """Ended run, whose result is on its way to the disk."""

    job_id: int
    result: CallbackItem
    stored: "Future[None]"
    #: False: without its result in the journal, the next start of the executor starts it
    started: bool

    def __str__(self) -> str:
        return f"job_id={self.job_id} log_id={self.result.log_id} code={self.result.handle_code}"


@dataclass(frozen=True, slots=True)
class Parts:
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
    #: programs that the handlers in this process run
    commands: RunningCommands = field(default_factory=RunningCommands)
    #: runs that have ended and are still to be logged
    ended: deque[Ended] = field(default_factory=deque)
    #: runs whose results could not be stored
    lost: list[Ended] = field(default_factory=list)

    def report(self, run: Run, result: RunResult) -> bool:
        """Store a run's result; True for the first caller, later ones do nothing."""
        if not run.mark_reported():
            return False
        progress = run.context.current_progress
        text = progress.to_text() if progress is not None else None
        stored = self.journal.finish(run.run_id, result.code, result.msg, now_ms=now_ms(), progress=text)
        run.log.close()
        run.end()
        self.counters.add("runs_succeeded" if result.code == SUCCESS else "runs_failed")
        request = run.request
        item = CallbackItem(request.log_id, request.log_date_time, result.code, result.msg, progress=text)
        self.ended.append(Ended(request.job_id, item, stored, run.starts))
        stored.add_done_callback(self.log_ended)
        return True

    def log_ended(self, _: object = None) -> None:
        """Log which runs have ended: those of a commit in one line, so that no job waits for the log."""
        ended: list[Ended] = []
        lost: list[Ended] = []
        with contextlib.suppress(IndexError):
            while True:
                run = self.ended.popleft()
                if not run.stored.done():  # it is in a later commit
                    self.ended.appendleft(run)
                    break
                (lost if run.stored.exception() else ended).append(run)
        if ended:
            logger.info("run ended %s", "; ".join(map(str, ended)))
        if lost:
            self.lost.extend(lost)
            logger.error("result not stored %s", "; ".join(map(str, lost)))
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
        parts: Parts,
        abandon: Callable[[Run], None],
    ) -> None:
        self._run = run
        self._work = work
        self._kind = kind
        self._parts = parts
        self._abandon = abandon
        self._started_s = monotonic_s()

    def start(self) -> None:
        """Cancel the run and schedule the next steps."""
        self._run.context.cancelled.set()
        self._work.cancel(self._kind)
        self._parts.watchdog.after(self._work.grace_s, self._force)

    def _force(self) -> None:
        if self._run.ended.is_set():
            return
        if monotonic_s() - self._started_s >= self._work.grace_s + self._parts.timing.abandon_s:
            # in its own thread: it takes a lock that may be held during a commit
            threading.Thread(target=self._abandon, args=(self._run,), name="abandon", daemon=True).start()
            return
        self._work.force(self._kind)
        self._parts.watchdog.after(min(FORCE_PERIOD_S, self._parts.timing.abandon_s), self._force)
