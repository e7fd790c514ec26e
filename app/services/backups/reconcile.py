"""Settling of a database that lacks the latest changes, so that no instant fires twice.

That is one that was restored, or that has lost its last commits, as an asynchronous standby has that was
promoted. So every instant up to now counts as fired or missed, and is recorded as skipped; a run without a
result ends as unresolved; ids of runs continue far above those that can have been given, because executors
remember them.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Clock, Millis, monotonic_ms
from app.database.engine import session_scope
from app.database.rows import bulk
from app.domain.enums import EndReason, ScheduleType, TriggerCode
from app.domain.packed_text import pack
from app.domain.runs.evidence import ResolveAction
from app.domain.runs.trace_templates import LOST, RESOLVED, RESTORED, fill
from app.domain.schedules.planning import MAX_COUNTED, MAX_COUNTED_WHEN_LATE
from app.domain.text.texts import N_, Text
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.skip import Skip
from app.pipeline.complete import Result, Source, complete
from app.pipeline.spans import keep_spans
from app.services.jobs.replan import first_instant, void_instants
from app.store.base import locks
from app.store.copies import after_restore, restore_mark, whole_tables
from app.store.fires import queue as fires
from app.store.jobs.scheduling import DueJob, lock_planned, schedule_of
from app.store.promises import clearing as promise_clearing
from app.store.rounds import editing as rounds

#: ids of runs that are skipped: in all, and for each second since the backup; two restores of one backup
#: must not give the same ids either
IDS_MIN = 1_000_000
IDS_A_SECOND = 1_000
#: runs of one statement
PAGE = 500
#: jobs of one statement: fewer, because counting the missed times of one may take 0.1 s
JOBS_PAGE = 100
#: after so long the missed times of further jobs are counted up to MAX_COUNTED_WHEN_LATE only
COUNTING_MAX_MS: Millis = 10_000


#: reason of backfills that are paused
BACKFILL_PAUSED = N_(
    "The database lacks its latest changes, after a restore or a failover: some of what waits may have run"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a database is settled: reason of the skips, and text for the traces of runs."""

    reason: str
    text: Text


RESTORE = Cause("restored", RESTORED)
LOST_COMMITS = Cause("lost", LOST)


@dataclass(frozen=True, slots=True)
class Fires:
    """Result of settling: what was done to jobs and runs."""

    #: jobs that continue with an instant after now
    jobs: int
    #: manual runs, retries and child runs that had not begun
    queued: int
    #: runs without a result, which ended as unresolved
    open_runs: int
    #: backfills that were paused
    backfills: int = 0


@dataclass(frozen=True, slots=True)
class Settlement:
    """Result of settling a restored database."""

    fires: Fires
    tasks: int
    logins: int
    next_log_id: int


def settle(*, made_ms: Millis, clock: Clock, monotonic: Callable[[], Millis] = monotonic_ms) -> Settlement:
    """Settle the restored database that is bound, which no other program uses, in one transaction."""
    with session_scope() as session:
        locks.take_schedule_lock(session)
        fires_settled = settle_fires(session, RESTORE, clock=clock, monotonic=monotonic)
        tasks, logins = after_restore.cancel_tasks(session, now_ms=clock()), after_restore.end_logins(session)
        after_restore.forget_heartbeats(session)
        rounds.end_restored(session, now_ms=clock())
        promise_clearing.restart_promises(session, now_ms=clock())
        restore_mark.mark_settled(session)
        next_id = skip_ids(session, since_ms=made_ms, now_ms=clock())
    return Settlement(fires_settled, tasks, logins, next_id)


def skip_ids(session: Session, *, since_ms: Millis, now_ms: Millis, beyond: int = 0) -> int:
    """Leave out the ids that may have been given since an instant, last in a transaction; return the next."""
    count = IDS_MIN + max(0, now_ms - since_ms) // SECOND_MS * IDS_A_SECOND
    return whole_tables.skip_log_ids(session.connection(), count, beyond=beyond)


def preview(session: Session, *, now_ms: Millis) -> Fires:
    """Return the result that settling would have now."""
    job_rows = after_restore.find_planned(session, now_ms=now_ms)
    count, open_runs = after_restore.count_fires(session, now_ms=now_ms)
    return Fires(len(job_rows), count, open_runs)


def settle_fires(
    session: Session,
    cause: Cause,
    *,
    clock: Clock,
    highest_id: int = 0,
    monotonic: Callable[[], Millis] = monotonic_ms,
) -> Fires:
    """Skip all instants up to now, withdraw what is queued and end open runs; under the schedule lock.

    Backfills are paused: of instants that they count as waiting, some may have run since.
    Claims may go on, as they take other locks: runs beyond the ids given and ``highest_id`` are left alone.
    """
    up_to = max(whole_tables.last_log_id(session.connection()), highest_id)
    job_rows = after_restore.find_planned(session, now_ms=clock())
    began_ms = monotonic()
    for first in range(0, len(job_rows), JOBS_PAGE):
        is_late = monotonic() - began_ms >= COUNTING_MAX_MS
        count_max = MAX_COUNTED_WHEN_LATE if is_late else MAX_COUNTED
        _replan(session, job_rows[first : first + JOBS_PAGE], cause, clock, count_max)
    now_ms = clock()
    reason = json.dumps(pack(BACKFILL_PAUSED))
    backfills = after_restore.pause_backfills(session, reason=reason, now_ms=now_ms)
    skip_count = _skip_queued(session, cause, now_ms)
    return Fires(len(job_rows), skip_count, end_runs(session, cause, up_to=up_to, now_ms=now_ms), backfills)


def end_runs(session: Session, cause: Cause, *, up_to: int, now_ms: Millis) -> int:
    """End the runs without a result, up to a log id, as unresolved; return how many were not ended before."""
    trace = fill(RESOLVED, outcome=ResolveAction.UNRESOLVED, reason=fill(cause.text))
    count = 0
    while runs := after_restore.find_open_runs(session, up_to=up_to, limit=PAGE):
        count += len(_end(session, runs, trace, now_ms))
        fires.delete_of_logs(session, runs)
    return count


def _replan(session: Session, job_ids: Sequence[int], cause: Cause, clock: Clock, count_max: int) -> None:
    """Record the due instants of jobs as skipped and set their next times after now."""
    jobs = lock_planned(session, job_ids)
    void_result = void_instants(session, jobs, reason=cause.reason, clock=clock, count_max=count_max)
    out = fires.count_open_scheduled(session, list(jobs))
    rows = []
    for job_id, job in jobs.items():
        last_ms = void_result.last_ms[job_id]
        next_ms = _next_ms(job, last_ms, has_run=bool(out[job_id]), now_ms=void_result.now_ms)
        running = {} if next_ms else {"trigger_status": 0}
        rows.append({"id": job_id, "trigger_next_time": next_ms, "last_fire_ms": last_ms} | running)
    bulk.update_many(session, Job, [row for row in rows if "trigger_status" not in row])
    bulk.update_many(session, Job, [row for row in rows if "trigger_status" in row])
    keep_spans(session, list(jobs), now_ms=void_result.now_ms, reason=EndReason.RESTORED)


def _next_ms(job: DueJob, last_ms: Millis, *, has_run: bool, now_ms: Millis) -> Millis:
    """Return the next time of a job; 0 if its schedule has ended or it is stopped."""
    schedule = schedule_of(job, zone_name())
    if not job.trigger_status:
        return 0
    if schedule.type is ScheduleType.FIX_DELAY and has_run:
        return AFTER_THE_CURRENT_RUN
    try:
        return first_instant(schedule, last_ms, now_ms=now_ms)
    except InvalidInput:
        return 0


def _skip_queued(session: Session, cause: Cause, now_ms: Millis) -> int:
    """Withdraw what was queued for now and has no run: manual runs, retries, children.

    Each is recorded at its logical time.
    """
    rows_queued = after_restore.take_queued(session, now_ms=now_ms)
    rows = [
        {
            "job_id": row["job_id"],
            "from_ms": row["logical_ms"],
            "to_ms": row["logical_ms"],
            "skipped": 1,
            "reason": cause.reason,
            "trigger_type": "" if row["trigger_type"] in fires.SCHEDULED else row["trigger_type"],
            "recorded_ms": now_ms,
        }
        for row in rows_queued
    ]
    bulk.insert_many(session, Skip, rows)
    return len(rows)


def _end(session: Session, runs: Sequence[int], trace: str, now_ms: Millis) -> Sequence[int]:
    code = TriggerCode.UNRESOLVED
    results = [Result(run, Source.RESOLVER, trigger_code=code, trace=trace) for run in runs]
    return complete(session, results, now_ms=now_ms).run_ids
