"""Replanning after a schedule has changed, stopped or started, of one job or of many.

Planned fires are withdrawn, due instants are recorded as skipped, and the first instant of the new schedule
is computed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.rows import bulk
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.planning import MAX_COUNTED
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.claimed_ahead import wait_for_claimed
from app.pipeline.rounds.ends import record_skips
from app.pipeline.scan import first_ahead, last_decided
from app.pipeline.skips import skip_row, skip_rows
from app.pipeline.spans import keep_spans
from app.pipeline.unscanned_instants import find_unscanned
from app.services.jobs import rules
from app.store.calendars import current_book
from app.store.fires import queue as fires
from app.store.fires import scheduled_fires
from app.store.jobs.scheduling import DueJob, find_planned, lock_planned, schedule_of

#: columns whose change invalidates the planned instants
PLANNED_BY = ("schedule_type", "schedule_conf", "time_zone", "not_before_ms", "not_after_ms", "calendar")


def first_instant(
    schedule: Schedule, last_fire_ms: Millis, *, now_ms: Millis, in_progress: int = 0
) -> Millis:
    """Return the first instant after now that was never fired; raises InvalidInput if there is none.

    ``in_progress``: open runs of the schedule; a fixed delay continues after them.
    """
    try:
        next_ms = next_after_ms(schedule, max(now_ms, last_fire_ms))
    except ValueError as exc:
        raise InvalidInput("scheduleConf", N_("The schedule is invalid: %(reason)s", reason=exc)) from exc
    if next_ms is None:
        raise InvalidInput("scheduleConf", N_("The schedule is invalid: it never fires again"))
    return AFTER_THE_CURRENT_RUN if schedule.type is ScheduleType.FIX_DELAY and in_progress else next_ms


@dataclass(frozen=True, slots=True)
class VoidedInstants:
    """Result of ``void_instants``; ``last_ms`` is the new ``last_fire_ms`` of each job."""

    now_ms: Millis
    withdrawn: int
    last_ms: Mapping[int, Millis]
    #: jobs that the scan has stopped because it had read their last instants ahead, which are withdrawn now
    reopened_ids: Collection[int]


def void_instants(
    session: Session,
    jobs: Mapping[int, DueJob],
    *,
    reason: str,
    clock: Clock,
    count_max: int = MAX_COUNTED,
) -> VoidedInstants:
    """Withdraw the unclaimed fires of these jobs' schedules; record the instants that are due as skipped.

    The caller holds the jobs' locks. The clock is read when the fires are locked, too, so that instants that
    fall due while waiting for the locks are recorded, not lost. ``jobs`` are as before the change.
    The missed instants of a cron are counted up to ``count_max``.
    """
    times_by_job = withdraw_unsent(session, jobs, clock=clock)
    now_ms = clock()
    rows: list[bulk.Row] = []
    last_ms: dict[int, Millis] = {}
    reopened_ids: set[int] = set()
    for job_id, job in jobs.items():
        instants = times_by_job.get(job_id, ())
        due = [instant for instant in instants if instant <= now_ms]
        rows += skip_rows(job, due, zone=zone_name(), reason=reason, now_ms=now_ms)
        skip = find_unscanned(job, now_ms=now_ms, count_max=count_max)
        rows += [skip_row(job_id, skip, reason=reason, now_ms=now_ms)] if skip else []
        open_ms = first_ahead(job, instants, zone_name())
        last_ms[job_id] = max(_last_decided(job, instants, open_ms, now_ms), skip.to_ms if skip else 0)
        if open_ms is not None and job.trigger_status != TriggerStatus.RUNNING and len(due) < len(instants):
            reopened_ids.add(job_id)
    record_skips(session, rows, jobs, now_ms=now_ms)
    return VoidedInstants(now_ms, sum(map(len, times_by_job.values())), last_ms, reopened_ids)


def withdraw_unsent(
    session: Session, job_ids: Collection[int], *, clock: Clock
) -> Mapping[int, Collection[Millis]]:
    """Withdraw the unclaimed fires of these jobs' schedules; return job id -> their due times.

    Waits for the instants of runs that are claimed but not sent yet, CLAIM_AHEAD_MS at most: after the commit
    none may start.
    """
    times_by_job = scheduled_fires.withdraw(session, job_ids)
    wait_for_claimed(session, job_ids, clock=clock)
    return times_by_job


def _last_decided(
    job: DueJob, instants: Collection[Millis], open_ms: Millis | None, now_ms: Millis
) -> Millis:
    """Return the latest instant with a run or a skip; ``instants`` are withdrawn, ``open_ms`` the first."""
    if job.schedule_type == ScheduleType.FIX_DELAY and any(instant > now_ms for instant in instants):
        return min(job.last_fire_ms, now_ms)  # Its one instant leads to no next time.
    return last_decided(job, open_ms, zone_name(), now_ms=now_ms)


def replan_jobs(
    session: Session, schedules: Mapping[int, tuple[Schedule, Millis]], *, clock: Clock
) -> Millis:
    """Void the instants of jobs whose schedules change, and set their next times; return as of when.

    The caller holds the jobs' locks and writes the schedules afterwards. ``schedules`` is job id -> (new
    schedule, its first instant when it was planned). That instant is recomputed only if it has passed or
    was fired already, which keeps the locks short. A job whose last instants are withdrawn is on again.
    """
    rows = []
    jobs = lock_planned(session, schedules)
    void_result = void_instants(session, jobs, reason="edited", clock=clock)
    out = fires.count_open_scheduled(session, list(jobs))
    for job_id, job in jobs.items():
        schedule, next_ms = schedules[job_id]
        last_ms = void_result.last_ms[job_id]
        if job.trigger_status != TriggerStatus.RUNNING and job_id not in void_result.reopened_ids:
            continue
        if last_ms > void_result.now_ms or next_ms <= void_result.now_ms:
            try:
                next_ms = first_instant(schedule, last_ms, now_ms=void_result.now_ms)
            except InvalidInput:
                if job.trigger_status == TriggerStatus.RUNNING:
                    raise
                continue  # the job stays off
        if schedule.type is ScheduleType.FIX_DELAY and out[job_id]:
            next_ms = AFTER_THE_CURRENT_RUN
        row = {"id": job_id, "trigger_next_time": next_ms, "last_fire_ms": last_ms}
        rows.append(row | {"trigger_status": TriggerStatus.RUNNING.value})
    bulk.update_many(session, Job, rows)
    return void_result.now_ms


def set_next_time(session: Session, job: Job, void_result: VoidedInstants) -> None:
    """Set the next time by an edited schedule; a job that the scan had stopped stays off if there is none."""
    try:
        job.trigger_next_time = next_time_of(session, job, void_result.now_ms)
    except InvalidInput:
        if not void_result.reopened_ids:
            raise
        job.trigger_status = int(TriggerStatus.STOPPED)


def next_time_of(session: Session, job: Job, now_ms: Millis) -> Millis:
    """Return the next time of a job that is on from now; raises InvalidInput if there is none."""
    schedule = rules.schedule_of(job, zone_name(), current_book.refresh(session))
    is_delay = schedule.type is ScheduleType.FIX_DELAY and job.id
    in_progress = fires.count_open_scheduled(session, [job.id])[job.id] if is_delay else 0
    return first_instant(schedule, job.last_fire_ms or 0, now_ms=now_ms, in_progress=in_progress)


def void_job(session: Session, job: Job, *, reason: str, clock: Clock) -> VoidedInstants:
    """Withdraw the planned instants of a locked job's schedule, and record due ones as skipped."""
    planned_job = find_planned(session, [job.id])[job.id]
    void_result = void_instants(session, {job.id: planned_job}, reason=reason, clock=clock)
    job.last_fire_ms = void_result.last_ms[job.id]
    if void_result.reopened_ids:  # the scan had stopped the job
        job.trigger_status = int(TriggerStatus.RUNNING)
    return void_result


def switch_on(session: Session, job_ids: Collection[int], *, clock: Clock) -> None:
    """Switch these schedules on, each from its first unfired instant after now; raises InvalidInput."""
    jobs = lock_planned(session, job_ids) if job_ids else {}
    out = fires.count_open_scheduled(session, list(jobs)) if jobs else {}
    now_ms, rows = clock(), list[bulk.Row]()
    book = current_book.of_transaction(session) if jobs else None
    for job_id, job in jobs.items():
        if job.trigger_status == TriggerStatus.RUNNING:
            continue
        schedule = schedule_of(job, zone_name(), book)
        next_ms = first_instant(schedule, job.last_fire_ms, now_ms=now_ms, in_progress=out[job_id])
        rows.append(_row(job_id, TriggerStatus.RUNNING, next_ms, job.last_fire_ms, now_ms))
    bulk.update_many(session, Job, rows)
    keep_spans(session, [row["id"] for row in rows], now_ms=now_ms)


def switch_off(session: Session, job_ids: Collection[int], *, clock: Clock) -> None:
    """Switch these schedules off, withdraw their unsent fires, and record the due ones as skipped."""
    jobs = lock_planned(session, job_ids) if job_ids else {}
    if not jobs:
        return
    result = void_instants(session, jobs, reason="stopped", clock=clock)
    rows = [_row(job_id, TriggerStatus.STOPPED, 0, result.last_ms[job_id], result.now_ms) for job_id in jobs]
    bulk.update_many(session, Job, rows)
    keep_spans(session, list(jobs), now_ms=result.now_ms)


def _row(job_id: int, status: TriggerStatus, next_ms: int, last_ms: int, now_ms: int) -> bulk.Row:
    return {
        "id": job_id,
        "trigger_status": int(status),
        "trigger_last_time": 0,
        "trigger_next_time": next_ms,
        "last_fire_ms": last_ms,
        "update_time": now_ms,
    }
