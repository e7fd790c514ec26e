"""Switches of many jobs at once, whose rows and rights the caller has locked and checked."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.clock import Clock
from app.database.rows import bulk
from app.domain.enums import ScheduleType, TriggerStatus
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.scan import schedule_of
from app.services.jobs.replan import first_instant, void_instants
from app.store.fires import queue as fires
from app.store.jobs.scheduling import lock_planned


def switch_on(session: Session, job_ids: Collection[int], *, clock: Clock) -> None:
    """Switch these schedules on, each from its first unfired instant after now; raises InvalidInput."""
    jobs = lock_planned(session, job_ids) if job_ids else {}
    out = fires.count_open_scheduled(session, list(jobs)) if jobs else {}
    now_ms, rows = clock(), list[bulk.Row]()
    for job_id, job in jobs.items():
        if job.trigger_status == TriggerStatus.RUNNING:
            continue
        next_ms = first_instant(schedule_of(job, zone_name()), job.last_fire_ms, now_ms=now_ms)
        if job.schedule_type == ScheduleType.FIX_DELAY and out[job_id]:
            next_ms = AFTER_THE_CURRENT_RUN
        rows.append(_row(job_id, TriggerStatus.RUNNING, next_ms, job.last_fire_ms, now_ms))
    bulk.update_many(session, Job, rows)


def switch_off(session: Session, job_ids: Collection[int], *, clock: Clock) -> None:
    """Switch these schedules off, withdraw their unsent fires, and record the due ones as skipped."""
    jobs = lock_planned(session, job_ids) if job_ids else {}
    if not jobs:
        return
    result = void_instants(session, jobs, reason="stopped", clock=clock)
    rows = [_row(job_id, TriggerStatus.STOPPED, 0, result.last_ms[job_id], result.now_ms) for job_id in jobs]
    bulk.update_many(session, Job, rows)


def _row(job_id: int, status: TriggerStatus, next_ms: int, last_ms: int, now_ms: int) -> bulk.Row:
    return {
        "id": job_id,
        "trigger_status": int(status),
        "trigger_last_time": 0,
        "trigger_next_time": next_ms,
        "last_fire_ms": last_ms,
        "update_time": now_ms,
    }
