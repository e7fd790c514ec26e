"""Job thread: executes the runs of one job in order, and ends them on timeout or kill."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from executor_client.execution.glue import GlueScript, ScriptSettings
from executor_client.execution.handler_calls import call_handler, call_hook
from executor_client.execution.run_kinds import ChildWork, FunctionWork, ScriptWork
from executor_client.execution.services import Services, Termination
from executor_client.handlers.registry import Handler
from executor_client.processes.tree import RunProcesses
from executor_client.runs.run import Run, RunResult, Work
from executor_client.wire.clock import local_stamp, now_ms
from executor_client.wire.errors import Interruption, JobKilled, JobTimedOut, JournalUnavailable
from executor_client.wire.protocol import FAIL, MSG_TIMEOUT, TIMEOUT

#: retry delay of a start that could not be written to the journal
JOURNAL_RETRY_S = 1.0

logger = logging.getLogger(__name__)


class JobThread:
    """Executes the runs of one job with one handler, in the order of their acceptance."""

    def __init__(
        self,
        job_id: int,
        handler: Handler | GlueScript,
        services: Services,
        owner: "Owner",
    ) -> None:
        self.job_id = job_id
        self.handler = handler
        self._services = services
        self._owner = owner
        self._begin_event = threading.Event()
        self._wait_for: threading.Event | None = None
        self._condition = threading.Condition()
        self._queue: deque[Run] = deque()
        self._current: Run | None = None
        self._stop_event = threading.Event()
        #: set when the thread has ended, its destroy hook included, or was abandoned
        self.end_event = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"job-{job_id}", daemon=True)

    @property
    def thread(self) -> threading.Thread:
        """Its thread."""
        return self._thread

    def start(self) -> None:
        """Start the thread, which waits for ``begin``; raise RuntimeError if no thread can be created."""
        self._thread.start()

    def begin(self, wait_for: threading.Event | None = None) -> None:
        """Begin to work. ``wait_for`` is set when the previous thread has ended."""
        self._wait_for = wait_for
        self._begin_event.set()

    def push(self, run: Run) -> None:
        """Queue a run."""
        with self._condition:
            self._queue.append(run)
            self._condition.notify()

    @property
    def current(self) -> Run | None:
        """The running run, None if idle."""
        with self._condition:
            return self._current

    @property
    def is_busy(self) -> bool:
        """True while a run is running or queued."""
        with self._condition:
            return self._current is not None or bool(self._queue)

    @property
    def waiting(self) -> int:
        """Number of queued runs."""
        with self._condition:
            return len(self._queue)

    def stop(self, reason: str) -> None:
        """End this thread: kill the running run and fail the queued ones with XXL-JOB's messages."""
        for run in self.close():
            result = RunResult(FAIL, f"{reason} [job not executed, in the job queue, killed.]")
            run.freeze(result)
            self._services.report(run, result)
        current = self.current
        if current is not None:
            self._terminate(current, RunResult(FAIL, f"{reason} [job running, killed]"), JobKilled)
        else:
            self._limit_hook()

    def close(self) -> list[Run]:
        """Reject further runs; return those that have not started."""
        with self._condition:
            waiting_runs = list(self._queue)
            self._queue.clear()
            self._stop_event.set()
            self._condition.notify()
        return waiting_runs

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; False if it is still alive."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _main(self) -> None:
        self._begin_event.wait()
        if self._wait_for is not None:
            self._wait_for.wait()
            self._wait_for = None
        try:
            if not self._stop_event.is_set():
                self._work()
        finally:
            self._end()

    def _work(self) -> None:
        """Execute runs until this thread has to end, between the hooks of the handler."""
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
                    "run failed by an internal error job_id=%s log_id=%s", self.job_id, run.request.log_id
                )
                self._services.report(
                    run, run.settle(RuntimeError("internal error of the executor, see its log"))
                )
        if function and function.destroy:
            self._limit_hook()
            call_hook(
                function.destroy,
                lambda exc: logger.warning("destroy hook failed job_id=%s", self.job_id, exc_info=exc),
            )

    def _limit_hook(self) -> None:
        """Let a hook delay the next thread for ``abandon_s`` only; this one takes no more runs."""
        self._services.watchdog.after(self._services.timing.abandon_s, self._leave_hook)

    def _leave_hook(self) -> None:
        if self._wait_for is None and not self.end_event.is_set():
            logger.warning("hook still running, the next thread starts job_id=%s", self.job_id)
            self._end()

    def _end(self) -> None:
        """Let the next thread start."""
        self.end_event.set()
        self._owner.remove(self)

    def _take(self) -> Run | None:
        """Wait for the next run; None when this thread has to end."""
        while True:
            with self._condition:
                self._current = None
                if not self._queue and not self._stop_event.is_set():
                    self._condition.wait(self._services.timing.idle_limit_s)
                if self._queue and not self._stop_event.is_set():
                    self._current = self._queue.popleft()
                    return self._current
                if self._stop_event.is_set():
                    return None
            if self._owner.retire(self):
                return None

    def _execute(self, run: Run) -> None:
        """Execute a run and store its result; a run that already has a result is only stored."""
        if run.result is None and self._may_start(run):
            self._run_handler(run)
        with self._condition:
            self._current = None
        result = run.result
        if result is not None:
            self._services.report(run, result)

    def _run_handler(self, run: Run) -> None:
        run.log.open(self._line(f"job execute start, param: {run.request.executor_params or 'null'}"))
        work = self._work_of(run)
        if not isinstance(work, FunctionWork):
            run.log.flush()  # other processes write to it
        error = self._call(run, work) if run.start(work) else None
        result = run.settle(error)
        end = "end(finish)" if error is None else "end(error)"
        self._banner(run, f"job execute {end}, handleCode: {result.code}, handleMsg: {result.msg or 'null'}")

    def _call(self, run: Run, work: Work) -> BaseException | None:
        """Call the handler; return the exception it raised."""
        limit_s = run.request.executor_timeout
        timeout_result = RunResult(TIMEOUT, MSG_TIMEOUT)
        deadline = (
            self._services.watchdog.after(limit_s, lambda: self._terminate(run, timeout_result, JobTimedOut))
            if limit_s > 0
            else None
        )
        error = call_handler(run.context, work)
        if deadline is not None:
            deadline.cancel()
        return error

    def _may_start(self, run: Run) -> bool:
        """Move the run to STARTED on disk, retrying while the journal fails; False if it must not start."""
        if run.starts:
            return True
        while run.result is None:
            try:
                run.starts = self._services.journal.start(run.run_id)
                return run.starts
            except JournalUnavailable as exc:
                logger.warning(
                    "start not stored job_id=%s log_id=%s error=%s", self.job_id, run.request.log_id, exc
                )
                if self._stop_event.wait(JOURNAL_RETRY_S):
                    break
        return False

    def _work_of(self, run: Run) -> Work:
        services = self._services
        run.context._processes = RunProcesses(partial(services.journal.record_processes, run.run_id))
        run.context._commands = services.commands
        if isinstance(self.handler, GlueScript):
            settings = ScriptSettings(services.log_root, services.script_limits)
            return ScriptWork(self.handler, run.context, settings, services.timing)
        if self.handler.process:
            return ChildWork(self.handler, run, services.timing)
        return FunctionWork(self.handler, run.context, services.timing, services.event_loop)

    def _terminate(self, run: Run, result: RunResult, kind: type[Interruption]) -> None:
        """Freeze the result of a run and end its handler."""
        work = run.abort(result)
        if work is not None:
            self._banner(run, f"ending the job: {result.msg}")
            Termination(run, work, kind, self._services, self._abandon).start()

    def _abandon(self, run: Run, work: Work) -> None:
        """Report a run whose handler does not end; a new thread takes over the job."""
        self._banner(run, "handler does not end; it continues in the background and its result is ignored")
        if stack := "".join(work.stack()):
            run.log.write(f"It is here:\n{stack}")
        logger.warning("handler abandoned job_id=%s log_id=%s", self.job_id, run.request.log_id)
        if self._services.report(run, run.settle(None)):
            self._services.counters.add("runs_abandoned")
            self._end()
            self._owner.replace(self)

    def _banner(self, run: Run, text: str) -> None:
        run.log.write(self._line(text))

    def _line(self, text: str) -> str:
        return f"{local_stamp(now_ms())} ----------- {text} -----------\n"


class Owner:
    """Callbacks from job threads to the intake."""

    def __init__(
        self,
        retire: Callable[[JobThread], bool],
        replace: Callable[[JobThread], None],
        remove: Callable[[JobThread], None],
    ) -> None:
        #: called by an idle thread: True if it has been removed and may end
        self.retire = retire
        #: called for a thread stuck in a handler: moves its queue to a new one
        self.replace = replace
        #: called for a thread that has ended, or that the next one does not wait for any more
        self.remove = remove
