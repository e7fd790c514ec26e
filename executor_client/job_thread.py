"""One job's thread: its queue, its runs one after the other, their ends."""

import logging
import threading
from collections import deque
from collections.abc import Callable

from executor_client.clock import local_stamp, now_ms
from executor_client.context import entered
from executor_client.errors import Interruption, JobKilled, JobTimedOut, JournalUnavailable, RunFailed
from executor_client.glue import GlueScript
from executor_client.handlers import Handler
from executor_client.parts import Parts, Termination
from executor_client.protocol import FAIL, MSG_TIMEOUT, TIMEOUT
from executor_client.run import Run, RunResult, Work
from executor_client.work import ChildWork, FunctionWork, ScriptWork, call_hook, traceback_of

#: wait before a start that could not be written to the journal is tried again
JOURNAL_RETRY_S = 1.0

logger = logging.getLogger(__name__)


class JobThread:
    """Carries out the runs of one job with one handler, in the order of their acceptance."""

    def __init__(
        self,
        job_id: int,
        handler: Handler | GlueScript,
        parts: Parts,
        owner: "Owner",
        wait_for: threading.Event | None = None,
    ) -> None:
        """``after`` is set when the last run of a thread before this one has ended: the first run here waits for it."""
        self.job_id = job_id
        self.handler = handler
        self._parts = parts
        self._owner = owner
        self._wait_for = wait_for
        self._changed = threading.Condition()
        self._queue: deque[Run] = deque()
        self._current: Run | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"job-{job_id}", daemon=True)

    def start(self) -> None:
        """Start the thread; raise RuntimeError if the system has no more threads."""
        self._thread.start()

    def push(self, run: Run) -> None:
        """Queue a run."""
        with self._changed:
            self._queue.append(run)
            self._changed.notify()

    @property
    def current(self) -> Run | None:
        """The run being carried out."""
        with self._changed:
            return self._current

    @property
    def run_ended(self) -> threading.Event | None:
        """What a thread that takes this one's place has to wait for; None if nothing runs."""
        with self._changed:
            return self._current.ended if self._current is not None else self._wait_for

    @property
    def is_busy(self) -> bool:
        """True while a run is being carried out or waits."""
        with self._changed:
            return self._current is not None or bool(self._queue)

    @property
    def waiting(self) -> int:
        """How many runs wait in the queue."""
        with self._changed:
            return len(self._queue)

    def stop(self, reason: str) -> None:
        """End this thread for good: kill the run, fail the queued ones, each with the original's words."""
        for run in self.close():
            result = RunResult(FAIL, f"{reason} [job not executed, in the job queue, killed.]")
            run.freeze(result)
            self._parts.report(run, result)
        current = self.current
        if current is not None:
            self._terminate(current, RunResult(FAIL, f"{reason} [job running, killed]"), JobKilled)

    def close(self) -> list[Run]:
        """Take no further run; return those that have not begun."""
        with self._changed:
            left = list(self._queue)
            self._queue.clear()
            self._stopped.set()
            self._changed.notify()
        return left

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread's end; False if it goes on."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _main(self) -> None:
        if self._wait_for is not None:
            self._wait_for.wait()
            self._wait_for = None
        function = self.handler if isinstance(self.handler, Handler) and not self.handler.process else None
        if function:
            call_hook(
                function.init,
                lambda exc: logger.warning("init hook failed job_id=%s", self.job_id, exc_info=exc),
            )
        while (run := self._take()) is not None:
            try:
                self._execute(run)
            except (Exception, Interruption):
                logger.exception(
                    "run failed inside the executor job_id=%s log_id=%s", self.job_id, run.request.log_id
                )
                self._parts.report(
                    run, run.settle(RuntimeError("error inside the executor, see its own log"))
                )
        if function:
            call_hook(
                function.destroy,
                lambda exc: logger.warning("destroy hook failed job_id=%s", self.job_id, exc_info=exc),
            )

    def _take(self) -> Run | None:
        """Wait for the next run; None when this thread is to end."""
        while True:
            with self._changed:
                self._current = None
                if not self._queue and not self._stopped.is_set():
                    self._changed.wait(self._parts.timing.idle_limit_s)
                if self._queue and not self._stopped.is_set():
                    self._current = self._queue.popleft()
                    return self._current
                if self._stopped.is_set():
                    return None
            if self._owner.retire(self):
                return None

    def _execute(self, run: Run) -> None:
        """Take one run from its place in the queue to its stored result; one that has a result already only gets that stored."""
        if run.result is None and self._may_start(run):
            self._carry_out(run)
        with self._changed:
            self._current = None
        result = run.result
        if result is not None:
            self._parts.report(run, result)

    def _carry_out(self, run: Run) -> None:
        run.log.open()
        self._banner(run, f"job execute start, param: {run.request.executor_params or 'null'}")
        work = self._work_of(run)
        error = self._call(run, work) if run.start(work) else None
        result = run.settle(error)
        if error is not None and not isinstance(error, RunFailed):
            run.log.write(traceback_of(error))
        end = "end(finish)" if error is None else "end(error)"
        self._banner(run, f"job execute {end}, handleCode: {result.code}, handleMsg: {result.msg or 'null'}")

    def _call(self, run: Run, work: Work) -> BaseException | None:
        """Run the user's code; return what it raised."""
        limit_s = run.request.executor_timeout
        timed_out = RunResult(TIMEOUT, MSG_TIMEOUT)
        deadline = (
            self._parts.watchdog.after(limit_s, lambda: self._terminate(run, timed_out, JobTimedOut))
            if limit_s > 0
            else None
        )
        error: BaseException | None = None
        try:
            with entered(run.context):
                work.run()
        except BaseException as exc:
            error = exc
        if deadline is not None:
            deadline.cancel()
        return error

    def _may_start(self, run: Run) -> bool:
        """Move the run to STARTED on disk; wait while the journal cannot be written. False if it must not start."""
        while run.result is None:
            try:
                return self._parts.journal.start(run.run_id)
            except JournalUnavailable as exc:
                logger.warning(
                    "start not written job_id=%s log_id=%s error=%s", self.job_id, run.request.log_id, exc
                )
                if self._stopped.wait(JOURNAL_RETRY_S):
                    break
        return False

    def _work_of(self, run: Run) -> Work:
        parts = self._parts

        def record_process(identity: str) -> None:
            parts.journal.record_process(run.run_id, identity)

        if isinstance(self.handler, GlueScript):
            return ScriptWork(self.handler, run.context, parts.log_root, parts.timing, record_process)
        if self.handler.process:
            return ChildWork(self.handler, run, parts.timing, record_process)
        return FunctionWork(self.handler, run.context, parts.timing)

    def _terminate(self, run: Run, result: RunResult, kind: type[Interruption]) -> None:
        """Freeze the result of a run and see to it that it ends."""
        work = run.abort(result)
        if work is not None:
            self._banner(run, f"job is being ended: {result.msg}")
            Termination(run, work, kind, self._parts, self._abandon).start()

    def _abandon(self, run: Run) -> None:
        """Report a run whose handler cannot be ended, and let the job go on without this thread."""
        self._banner(
            run, "the handler ignores its end; it goes on in the background, its result does not count"
        )
        logger.warning("handler left behind job_id=%s log_id=%s", self.job_id, run.request.log_id)
        if self._parts.report(run, run.settle(None)):
            self._parts.counters.add("runs_abandoned")
            self._owner.replace(self)

    def _banner(self, run: Run, text: str) -> None:
        run.log.write(f"{local_stamp(now_ms())} ----------- {text} -----------\n")


class Owner:
    """What a job's thread asks of the one who made it."""

    def __init__(self, retire: Callable[[JobThread], bool], replace: Callable[[JobThread], None]) -> None:
        #: called without work for a while: True if the thread has been taken out and may end
        self.retire = retire
        #: called when the thread is stuck in a handler: its queue shall go on in a new one
        self.replace = replace
