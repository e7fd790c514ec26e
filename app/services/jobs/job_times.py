"""Times of one locked job: its instants are voided when its schedule stops or changes, then set anew."""

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.enums import ScheduleType, TriggerStatus
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.services.jobs.replan import VoidedInstants, first_instant, void_instants
from app.services.jobs.rules import schedule_of
from app.store.fires import queue as fires
from app.store.jobs.scheduling import DueJob


def set_next_time(session: Session, job: Job, void_result: VoidedInstants) -> None:
    """Set the next time by an edited schedule; a job that the scan had stopped stays off if there is none."""
    try:
        job.trigger_next_time = next_time_of(session, job, void_result.now_ms)
    except InvalidInput:
        if not void_result.reopened:
            raise
        job.trigger_status = int(TriggerStatus.STOPPED)


def next_time_of(session: Session, job: Job, now_ms: Millis) -> Millis:
    """Return the first instant after now that was never fired; raises InvalidInput if there is none.

    A fixed delay with a run in progress continues after that run.
    """
    schedule = schedule_of(job, zone_name())
    next_ms = first_instant(schedule, job.last_fire_ms or 0, now_ms=now_ms)
    if schedule.type is ScheduleType.FIX_DELAY and job.id:
        in_progress = fires.count_open_scheduled(session, [job.id])[job.id]
        return AFTER_THE_CURRENT_RUN if in_progress else next_ms
    return next_ms


def void_job(session: Session, job: Job, *, reason: str, clock: Clock) -> VoidedInstants:
    """Withdraw the planned instants of a locked job's schedule, and record due ones as skipped."""
    planned = DueJob(**{name: getattr(job, name) for name in DueJob._fields})
    void_result = void_instants(session, {job.id: planned}, reason=reason, clock=clock)
    job.last_fire_ms = void_result.last_ms[job.id]
    if void_result.reopened:  # the scan had stopped the job
        job.trigger_status = int(TriggerStatus.RUNNING)
    return void_result
