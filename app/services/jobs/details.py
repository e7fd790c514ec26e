"""Details of jobs: their next times, and from other tables tags, last run, and how code manages them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.calendars.effective import JobRules
from app.domain.calendars.preview import PreviewInstant, logical_times, preview
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.runs.logical_times import second_of
from app.domain.schedules.schedule import RESTING, Schedule, check_schedule, next_times
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import Job
from app.services.jobs.rules import schedule_of
from app.store.jobs import managed_objects
from app.store.jobs import tags as job_tags
from app.store.jobs.managed_objects import ManagedObject
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run

#: most instants of a preview with their fates, also those that do not run
FATES_MAX = 200


@dataclass(frozen=True, slots=True)
class JobDetails:
    """A job with its details."""

    job: Job
    tags: tuple[str, ...]
    #: newest run in a group the actor may see; None: none
    last_run: Run | None
    #: None: no code manages the job
    managed: ManagedObject | None


def details_of(session: Session, jobs: Sequence[Job], *, actor: Actor) -> list[JobDetails]:
    """Return the jobs with their details; the number of queries does not depend on theirs."""
    ids = [job.id for job in jobs]
    tags = job_tags.find_tags(session, ids)
    runs = recent_runs.find_newest_of_jobs(session, ids, group_ids=actor.group_ids(Right.VIEW), limit=1)
    entries = managed_objects.find_of_objects(session, managed_objects.JOB, ids)
    return [
        JobDetails(job, tags.get(job.id, ()), next(iter(runs.get(job.id, ())), None), entries.get(job.id))
        for job in jobs
    ]


def planned_ms(job: Job) -> Millis | None:
    """Return the next planned instant of a job; None if its schedule is off, or waits for the current run."""
    is_planned = job.trigger_status == TriggerStatus.RUNNING
    return job.trigger_next_time if is_planned and 0 < job.trigger_next_time < RESTING else None


def upcoming_logical(job: Job, count: int, *, now_ms: Millis) -> list[Millis]:
    """Return the logical times of the next runs; of a job without upcoming times that of a run now."""
    try:
        due = upcoming(job, count, now_ms=now_ms)
        return logical_times(_schedule(job), due) or [second_of(now_ms)]
    except InvalidInput:  # of a schedule that another program has stored
        return [second_of(now_ms)]


def upcoming(job: Job, count: int, *, now_ms: Millis) -> list[Millis]:
    """Return the next ``count`` instants, fewer if the schedule ends before.

    A fixed delay has at most one: the others depend on how long the runs take. Raises InvalidInput.
    """
    schedule, first_ms = _schedule(job), planned_ms(job)
    if schedule.type is ScheduleType.FIX_DELAY:
        return [first_ms] if first_ms is not None else []
    if first_ms is not None:
        return [first_ms, *next_times(schedule, first_ms, count - 1)]
    return next_times(schedule, max(now_ms, job.last_fire_ms or 0), count)


def upcoming_fates(job: Job, count: int, *, now_ms: Millis) -> list[PreviewInstant]:
    """Return what becomes of the next instants, until ``count`` of them run; empty without rules.

    Raises InvalidInput.
    """
    schedule = _schedule(job)
    if schedule.rules is None:
        return []
    return preview(schedule, max(now_ms, job.last_fire_ms or 0), count, most=FATES_MAX)


def _schedule(job: Job) -> Schedule:
    """Return the valid schedule of a job; a fixed rate with rules counts from its next time."""
    schedule, first_ms = schedule_of(job, zone_name()), planned_ms(job)
    check_schedule(schedule)
    if isinstance(schedule.rules, JobRules) and schedule.type is ScheduleType.FIX_RATE:
        return replace(schedule, rules=replace(schedule.rules, anchor_ms=first_ms or 0))
    return schedule
