"""Intake: accepts or rejects triggers (``/run``) and handles ``/kill`` and ``/idleBeat``.

Triggers of one job are accepted one after the other. A run is on disk before anything else changes: a trigger
that cannot be written, or was accepted before, kills nothing. A kill does not wait for that write, so the
thread that executes a run is chosen again after it.
"""

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from executor_client.execution.ending_threads import EndingThreads
from executor_client.execution.glue import GlueScript
from executor_client.execution.handler_choice import choose_handler
from executor_client.execution.job_thread import JobThread, Owner
from executor_client.execution.services import Services
from executor_client.handlers.registry import Handler, HandlerRegistry
from executor_client.journal.journal import OpenRun, RunState
from executor_client.logs.files import log_name
from executor_client.processes.sessions import kill_leftovers
from executor_client.runs.run import Run, RunResult
from executor_client.wire.clock import local_stamp, now_ms
from executor_client.wire.errors import JournalUnavailable, TriggerRefused
from executor_client.wire.protocol import (
    FAIL,
    MSG_ALREADY_KILLED,
    MSG_BUSY,
    MSG_COVER_EARLY,
    MSG_DISCARD_LATER,
    SUCCESS,
    Reply,
    RunRequest,
)

REASON_HANDLER_CHANGED = "change jobhandler or glue type, and terminate the old job thread."
REASON_SOURCE_CHANGED = "change job source or glue type, and terminate the old job thread."
REASON_KILLED = "scheduling center kill job."
REASON_STOPPED = "web container destroy and kill the job."
MSG_RESTARTED = "executor restarted while the job was running"
MSG_TOO_OLD = "accepted before a restart and now too old to start"
MSG_STOPPING = "the executor is stopping"

#: number of locks; jobs share them by id modulo this number
LOCK_COUNT = 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision which thread executes a run."""

    handler: Handler | GlueScript
    #: existing thread to use; None: a new one
    thread: JobThread | None
    #: thread that the new one replaces, and why
    predecessor: JobThread | None = None
    reason: str = ""


#: a trigger in its stored form, and whether it starts at once
PreparedTrigger = tuple[RunRequest, bool]


class Intake:
    """Job threads by job id, and every change of them."""

    def __init__(self, handlers: HandlerRegistry, allow_glue: frozenset[str], services: Services) -> None:
        self._handlers = handlers
        self._allow_glue = allow_glue
        self._services = services
        #: held while a trigger is accepted, its write included
        self._acceptance_locks = [threading.Lock() for _ in range(LOCK_COUNT)]
        #: held while the thread of a job is changed; never during a write
        self._locks = [threading.Lock() for _ in range(LOCK_COUNT)]
        self._threads: dict[int, JobThread] = {}
        self._ending = EndingThreads()
        self._is_closed = False
        self._owner = Owner(self._retire, self._replace_stuck, self._ending.remove)

    def run(self, request: RunRequest) -> Reply:
        """Accept or reject a trigger; both are final."""
        try:
            log_name(request.log_id, request.log_date_time)
        except ValueError as exc:
            return Reply(FAIL, f"logId and logDateTime are required: {exc}")
        with self._acceptance_locks[request.job_id % LOCK_COUNT]:
            reply = self._accept(request)
        if reply.code != SUCCESS:
            self._services.counters.add("runs_refused")
            logger.info(
                "run rejected job_id=%s log_id=%s reason=%s", request.job_id, request.log_id, reply.msg
            )
        return reply

    def run_together(self, requests: Sequence[RunRequest]) -> list[Reply | None]:
        """Accept triggers in one transaction; None for those to reject, and all but the first of a job."""
        replies: list[Reply | None] = [None] * len(requests)
        first_of = {requests[index].job_id % LOCK_COUNT: index for index in reversed(range(len(requests)))}
        with ExitStack() as locks:
            for number in sorted(first_of):  # in one order, so that two batches cannot deadlock
                locks.enter_context(self._acceptance_locks[number])
            pairs = ((index, self._try_prepare(requests[index])) for index in sorted(first_of.values()))
            triggers = {index: prepared_trigger for index, prepared_trigger in pairs if prepared_trigger}
            rows = triggers.values()
            try:
                run_ids = self._services.journal.accept_all(rows, now_ms=now_ms()) if rows else []
            except JournalUnavailable:
                return replies
            for (index, (request, starts)), run_id in zip(triggers.items(), run_ids, strict=True):
                if not isinstance(run_id, Exception):
                    replies[index] = self._reply(run_id, request, starts=starts)
        return replies

    def kill(self, job_id: int) -> Reply:
        """Stop a job's thread with its running and queued runs; returns before it has ended."""
        with self._lock_of(job_id):
            thread = self._threads.pop(job_id, None)
            if thread is None:
                return Reply(SUCCESS, MSG_ALREADY_KILLED)
            self._ending.add(thread)
            thread.stop(REASON_KILLED)
        return Reply(SUCCESS)

    def idle_beat(self, job_id: int) -> Reply:
        """Reply 200 if the job is idle here, 500 if it is running or queued."""
        thread = self._threads.get(job_id)
        return Reply(FAIL, MSG_BUSY) if thread is not None and thread.is_busy else Reply(SUCCESS)

    def run_state(self, log_id: int) -> Reply:
        """Reply with the state of a run: ``never`` (or expired), ``queued``, ``running`` or ``done(200)``."""
        try:
            row = self._services.journal.find_state(log_id)
        except JournalUnavailable as exc:
            return Reply(FAIL, str(exc))
        if row is None:
            return Reply(SUCCESS, None, "never")
        state, code = row
        names = {RunState.ACCEPTED: "queued", RunState.STARTED: "running"}
        return Reply(SUCCESS, None, names.get(state, f"done({code})"))

    def running(self, log_id: int) -> Run | None:
        """Return a run if it is running, a killed one too until its handler has ended."""
        runs = (thread.current for thread in self.threads())
        return next((run for run in runs if run and run.request.log_id == log_id), None)

    def restore(self, open_runs: list[OpenRun], *, not_before_ms: int) -> int:
        """Recover the runs of a previous process: queue queued ones again, report started ones as failed.

        Return how many were queued.
        """
        count = 0
        for open_run in open_runs:
            if open_run.is_started:
                if kill_leftovers(open_run.process):
                    logger.warning(
                        "killed processes of a previous executor job_id=%s log_id=%s",
                        open_run.request.job_id,
                        open_run.request.log_id,
                    )
                self._fail(open_run, MSG_RESTARTED)
            elif open_run.accepted_ms < not_before_ms:
                self._fail(open_run, MSG_TOO_OLD)
            else:
                count += self._queue_again(open_run)
        return count

    def close(self) -> list[JobThread]:
        """Reject further triggers, keep queued runs in the journal; return the threads, ending ones too."""
        self._is_closed = True
        for lock in self._locks:
            with lock:
                pass  # a trigger that was being queued is in its queue now
        for thread in (threads := self.threads()):
            for run in thread.close():
                if run.starts:
                    self._services.journal.requeue(run.run_id)
        return threads

    def threads(self) -> list[JobThread]:
        """Return the job threads, ending ones too."""
        return [*list(self._threads.values()), *self._ending.all()]

    @property
    def gauges(self) -> dict[str, int]:
        """Current numbers for the metrics."""
        threads = list(self._threads.values())
        return {
            "job_threads": len(threads),
            "runs_running": sum(thread.current is not None for thread in threads),
            "runs_waiting": sum(thread.waiting for thread in threads),
        }

    def _lock_of(self, job_id: int) -> threading.Lock:
        return self._locks[job_id % LOCK_COUNT]

    def _accept(self, request: RunRequest) -> Reply:
        """Accept a trigger; one that was accepted before is a duplicate and never rejected.

        Admins treat a rejection as final, so it must not hide an accepted run.
        """
        try:
            request, starts = self._prepare(request)
            run_id = self._services.journal.accept(request, now_ms=now_ms(), starts=starts)
        except (TriggerRefused, JournalUnavailable) as exc:
            return self._duplicate(request) if self._is_known(request) else Reply(FAIL, str(exc))
        return self._reply(run_id, request, starts=starts)

    def _prepare(self, request: RunRequest) -> PreparedTrigger:
        starts = self._starts_at_once(request.job_id, self._decide(request))
        return self._with_own_checkpoint(request), starts

    def _try_prepare(self, request: RunRequest) -> PreparedTrigger | None:
        """Prepare a trigger; None for one that would be rejected."""
        try:
            log_name(request.log_id, request.log_date_time)
            return self._prepare(request)
        except (ValueError, TriggerRefused, JournalUnavailable):
            return None

    def _reply(self, run_id: int | None, request: RunRequest, *, starts: bool) -> Reply:
        """Queue a stored run and return the reply; None is a duplicate."""
        if run_id is None:
            return self._duplicate(request)
        self._services.counters.add("runs_accepted")
        with self._lock_of(request.job_id):
            decision = self._decide_again(request)
            still_starts = starts and decision is not None and self._starts_at_once(request.job_id, decision)
            if starts and not still_starts:
                self._services.journal.requeue(run_id)
            if decision is not None:  # otherwise it starts after the next start of the executor
                self._enqueue(decision, self._new_run(run_id, request, starts=still_starts))
        return Reply(SUCCESS)

    def _decide_again(self, request: RunRequest) -> Decision | None:
        """Choose the thread of a stored run; None if the executor is stopping."""
        try:
            return self._decide(request)
        except TriggerRefused:
            return None

    def _with_own_checkpoint(self, request: RunRequest) -> RunRequest:
        """Prefer the checkpoint in the journal: after a kill, the console has sent the retry without it."""
        if not request.repeats:
            return request
        checkpoint = self._services.journal.find_checkpoint(request.repeats, request.job_id)
        return request._replace(checkpoint=checkpoint) if checkpoint is not None else request

    def _new_run(self, run_id: int, request: RunRequest, *, starts: bool = False) -> Run:
        run = Run(run_id, request, self._services.log_root, starts=starts)
        run.keep_checkpoint = partial(self._services.keep_checkpoint, run)
        return run

    def _starts_at_once(self, job_id: int, decision: Decision) -> bool:
        """Return whether a run of this job waits for no other; no trigger of it is accepted meanwhile."""
        if decision.thread is not None:
            return not decision.thread.is_busy
        return decision.predecessor is None and self._ending.last_of(job_id) is None

    def _is_known(self, request: RunRequest) -> bool:
        try:
            return self._services.journal.is_known(request, now_ms=now_ms())
        except JournalUnavailable:
            return False

    def _duplicate(self, request: RunRequest) -> Reply:
        self._services.counters.add("runs_duplicate")
        return Reply(SUCCESS, f"duplicate: logId {request.log_id} was accepted before")

    def _decide(self, request: RunRequest) -> Decision:
        """Choose handler and thread; raise TriggerRefused. Source: XXL-JOB 2.4.1 ExecutorBizImpl."""
        if self._is_closed:
            raise TriggerRefused(MSG_STOPPING)
        handler = choose_handler(request, self._handlers, self._allow_glue)
        thread = self._threads.get(request.job_id)
        if thread is None:
            return Decision(handler, None)
        if isinstance(handler, GlueScript):
            same, reason = handler.same_version(thread.handler), REASON_SOURCE_CHANGED
        else:
            same, reason = handler is thread.handler, REASON_HANDLER_CHANGED
        if not same:
            return Decision(handler, None, thread, reason)
        if request.executor_block_strategy == "DISCARD_LATER" and thread.is_busy:
            raise TriggerRefused(MSG_DISCARD_LATER)
        if request.executor_block_strategy == "COVER_EARLY" and thread.is_busy:
            return Decision(handler, None, thread, MSG_COVER_EARLY)
        return Decision(handler, thread)

    def _enqueue(self, decision: Decision, run: Run) -> None:
        """Apply a decision. A new thread starts work when the one before it has ended."""
        job_id = run.request.job_id
        thread = decision.thread
        if thread is None:
            thread = JobThread(job_id, decision.handler, self._services, self._owner)
            try:
                thread.start()
            except RuntimeError as exc:
                self._services.report(run, run.settle(exc))
                return
            self._threads[job_id] = thread
            if decision.predecessor is not None:
                self._ending.add(decision.predecessor)
                decision.predecessor.stop(decision.reason)
            last = self._ending.last_of(job_id)
            thread.begin(last.end_event if last is not None else None)
        thread.push(run)

    def _retire(self, thread: JobThread) -> bool:
        """Remove an idle thread; False if a trigger arrived in the meantime."""
        with self._lock_of(thread.job_id):
            if thread.is_busy:
                return False
            if self._threads.get(thread.job_id) is thread:
                del self._threads[thread.job_id]
                self._ending.add(thread)
            thread.close()
            return True

    def _replace_stuck(self, stuck_thread: JobThread) -> None:
        """Move the queue of a thread that cannot be ended to a new thread."""
        with self._lock_of(stuck_thread.job_id):
            if self._threads.get(stuck_thread.job_id) is not stuck_thread:
                return
            queue = stuck_thread.close()
            new_thread = JobThread(stuck_thread.job_id, stuck_thread.handler, self._services, self._owner)
            self._threads[stuck_thread.job_id] = new_thread
            for run in queue:
                new_thread.push(run)
            new_thread.start()
            new_thread.begin()

    def _queue_again(self, open_run: OpenRun) -> bool:
        with self._lock_of(open_run.request.job_id):
            try:
                decision = self._decide(open_run.request._replace(executor_block_strategy="SERIAL_EXECUTION"))
            except TriggerRefused as exc:
                self._fail(open_run, str(exc))
                return False
            self._enqueue(decision, self._new_run(open_run.run_id, open_run.request))
        return True

    def _fail(self, open_run: OpenRun, msg: str) -> None:
        run = self._new_run(open_run.run_id, open_run.request, starts=open_run.is_started)
        if open_run.is_started:
            run.log.open(f"{local_stamp(now_ms())} {msg}\n")
        self._services.report(run, RunResult(FAIL, msg))
