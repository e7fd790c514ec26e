"""Upcoming times: when a job's schedule starts its next runs, or would if it were switched on."""

from app.clock import Millis
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.schedule import check_schedule, next_times
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.services.jobs.rules import schedule_of


def planned_ms(job: Job) -> Millis | None:
    """Return the next planned instant of a job; None if its schedule is off, or waits for the current run."""
    is_planned = job.trigger_status == TriggerStatus.RUNNING
    return job.trigger_next_time if is_planned and 0 < job.trigger_next_time < AFTER_THE_CURRENT_RUN else None


def upcoming(job: Job, count: int, *, now_ms: Millis) -> list[Millis]:
    """Return the next ``count`` instants, fewer if the schedule ends before.

    A fixed delay has at most one: the others depend on how long the runs take. Raises InvalidInput.
    """
    schedule = schedule_of(job, zone_name())
    check_schedule(schedule)
    first_ms = planned_ms(job)
    if schedule.type is ScheduleType.FIX_DELAY:
        return [first_ms] if first_ms is not None else []
    if first_ms is not None:
        return [first_ms, *next_times(schedule, first_ms, count - 1)]
    return next_times(schedule, max(now_ms, job.last_fire_ms or 0), count)
