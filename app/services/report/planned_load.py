"""Planned load: count how many runs the schedules start in the next hours, to place a new job."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms
from app.domain.access.permissions import Actor, Right
from app.domain.enums import ScheduleType
from app.domain.schedules.planned_starts import HourlyStarts, Window, count_starts, total_starts
from app.domain.schedules.schedule import Schedule
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN
from app.store.jobs import scheduling as job_store
from app.store.jobs.scheduling import JobName, Scheduled

#: beyond this many schedules, the least used ones are not counted
SCHEDULES_MAX = 5_000
#: time spent on counting; schedules counted before are cached
BUDGET_MS: Millis = 300


class Planned(NamedTuple):
    """A schedule and the starts of each of its jobs; a page has thousands."""

    scheduled: Scheduled
    starts: HourlyStarts


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """Starts, within a window, of the jobs a user may see."""

    window: Window
    #: by hour
    starts: list[int]
    planned: list[Planned]
    #: jobs counted
    jobs: int
    #: jobs not counted: beyond SCHEDULES_MAX, or not reached in time
    left_out: int

    @property
    def is_estimated(self) -> bool:
        """Whether not all starts were counted one by one."""
        return any(starts.is_estimated for _scheduled, starts in self.planned)


@dataclass(frozen=True, slots=True)
class Starter:
    """A job, its schedule, and how many runs it starts."""

    job: JobName
    scheduled: Scheduled
    starts: int
    is_estimated: bool


def planned_load(
    session: Session, actor: Actor, window: Window, *, now_ms: Millis, budget_ms: Millis = BUDGET_MS
) -> PlannedLoad:
    """Count the starts of the enabled jobs the actor may see; a job with an invalid schedule has none."""
    group_ids = actor.group_ids(Right.VIEW)
    schedules = job_store.find_scheduled(session, group_ids, limit=SCHEDULES_MAX)
    jobs, planned, late_ms = 0, list[Planned](), monotonic_ms() + budget_ms
    for scheduled in schedules:
        if jobs and monotonic_ms() >= late_ms:
            break
        jobs += scheduled.jobs
        with suppress(ValueError, InvalidInput):  # the scan reports it
            planned.append(Planned(scheduled, _count(scheduled, window, now_ms)))
    totals = total_starts([(starts, scheduled.jobs) for scheduled, starts in planned], window)
    return PlannedLoad(window, totals, planned, jobs, job_store.count_scheduled(session, group_ids) - jobs)


def find_starters(
    session: Session, actor: Actor, load: PlannedLoad, hours: Collection[int], *, limit: int
) -> tuple[list[Starter], int]:
    """Return the jobs with the most starts in some hours of the window, and how many jobs have any."""
    starting = [(count, planned) for planned in load.planned if (count := planned.starts.count_in(hours)) > 0]
    starting.sort(key=lambda pair: (-pair[0], pair[1].scheduled.first_id))
    most = list[tuple[int, int, Planned]]()
    for count, planned in starting[:limit]:
        scheduled, room = planned.scheduled, limit - len(most)
        ids = [scheduled.first_id]
        if scheduled.jobs > 1 and room > 1:
            ids = job_store.find_of_schedule(session, actor.group_ids(Right.VIEW), scheduled, limit=room)
        most += [(job_id, count, planned) for job_id in ids[:room]]
    names = job_store.find_names(session, [job_id for job_id, _count, _planned in most])
    starters = [
        Starter(names[job_id], planned.scheduled, count, planned.starts.is_estimated)
        for job_id, count, planned in most
        if job_id in names
    ]
    return starters, sum(planned.scheduled.jobs for _count, planned in starting)


def _count(job: Scheduled, window: Window, now_ms: Millis) -> HourlyStarts:
    schedule = Schedule(
        ScheduleType(job.schedule_type),
        (job.schedule_conf or "").strip(),
        job.time_zone or zone_name(),
        job.not_before_ms,
        job.not_after_ms,
    )
    # a fixed delay counts from the end of a run: here as if the current one ended now
    next_ms = job.next_ms if 0 < job.next_ms < AFTER_THE_CURRENT_RUN else now_ms
    return count_starts(schedule, next_ms, window)
