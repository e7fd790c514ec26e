"""FIX_DELAY schedules: the next time, which is the last result plus the delay; none while a run is open."""

import logging
from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.errors import InvalidInput
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.endings import STOPPED, record_endings
from app.store.base import locks
from app.store.fires import queue as fires
from app.store.jobs import scheduling as jobs

logger = logging.getLogger(__name__)

#: period of the check for jobs that wait for a run that has ended or no longer exists
PERIOD_MS: Millis = 10_000
#: jobs resumed in one transaction
PAGE = 500


def set_delayed(session: Session, job_ids: Sequence[int], *, now_ms: Millis) -> int:
    """Set the next times of the jobs without an open scheduled run; return how many.

    A job whose window is over by then stops.
    """
    if not job_ids:
        return 0
    locked_jobs = locks.lock_jobs(session, job_ids)
    open_runs = fires.count_open_scheduled(session, job_ids)
    next_times = {
        job.id: _next_ms(job, now_ms) for job in locked_jobs if not open_runs[job.id] and _waits(job)
    }
    stopped_ids = [job_id for job_id, next_ms in next_times.items() if next_ms is None]
    bulk.update_many(
        session,
        Job,
        [{"id": job_id, "trigger_next_time": next_ms} for job_id, next_ms in next_times.items() if next_ms],
    )
    bulk.update_many(session, Job, [{"id": job_id} | STOPPED for job_id in stopped_ids])
    record_endings(session, dict.fromkeys(stopped_ids, ""), now_ms=now_ms)
    return len(next_times)


def _next_ms(job: Job, now_ms: Millis) -> Millis | None:
    """Return when a job is due after its run; None: its window is over. The scan stops an invalid one."""
    delay = job.schedule_conf or "1"
    schedule = Schedule(ScheduleType.FIX_DELAY, delay, "", job.not_before_ms, job.not_after_ms)
    try:
        return next_after_ms(schedule, now_ms)
    except (ValueError, InvalidInput):
        return now_ms


def _waits(job: Job) -> bool:
    return job.trigger_status == TriggerStatus.RUNNING and job.trigger_next_time == AFTER_THE_CURRENT_RUN


def tick_delays(now_ms: Millis) -> Millis:
    """Resume jobs whose run vanished without a result, or ended while they were locked; return the wait.

    A run vanishes when its log row is cleared.
    """
    with read_scope() as session:
        job_ids = jobs.find_after_current_run(session)
        idle_ids = [
            job_id for job_id, count in fires.count_open_scheduled(session, job_ids).items() if not count
        ]
    if not idle_ids:
        return PERIOD_MS
    for start in range(0, len(idle_ids), PAGE):
        page = idle_ids[start : start + PAGE]
        if transact(partial(set_delayed, job_ids=page, now_ms=now_ms)):
            logger.warning("fixed delay resumed, its run had ended job_ids=%s", page)
    return PERIOD_MS
