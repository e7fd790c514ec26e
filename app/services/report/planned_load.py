"""Planned load: estimate how many runs the schedules start in the next hours, to place a new job."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms
from app.domain.access.permissions import Actor, Right
from app.domain.enums import ScheduleType
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.planned_starts import HourlyStarts, Window, estimate_starts, total_starts
from app.domain.schedules.schedule import Schedule
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN
from app.store.jobs import scheduling as job_store
from app.store.jobs.scheduling import JobName, ScheduleGroup

#: beyond this many schedules, the least used ones are not counted
SCHEDULES_MAX = 5_000
#: time spent on reading schedules; those read before are cached
BUDGET_MS: Millis = 100
#: types that are slow to read, and cached
CACHED = frozenset({ScheduleType.CRON, ScheduleType.AT})


class Planned(NamedTuple):
    """A schedule and the starts of each of its jobs; a page has thousands."""

    scheduled: ScheduleGroup
    starts: HourlyStarts


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """Estimated starts, within a window, of the jobs a user may see."""

    window: Window
    #: by hour
    starts: list[int]
    planned: list[Planned]
    #: jobs counted
    jobs: int
    #: jobs not counted because there are more than SCHEDULES_MAX schedules
    too_many: int
    #: jobs not counted because their schedules were not read in time
    unread: int


@dataclass(frozen=True, slots=True)
class Starter:
    """A job, its schedule, and how many runs it starts."""

    job: JobName
    scheduled: ScheduleGroup
    starts: int


def planned_load(
    session: Session, actor: Actor, window: Window, *, now_ms: Millis, budget_ms: Millis = BUDGET_MS
) -> PlannedLoad:
    """Estimate the starts of the enabled jobs the actor may see; a job with an invalid schedule has none."""
    group_ids = actor.group_ids(Right.VIEW)
    schedules = job_store.find_scheduled(session, group_ids, limit=SCHEDULES_MAX)
    jobs = sum(scheduled.jobs for scheduled in schedules)
    too_many = job_store.count_scheduled(session, group_ids) - jobs if len(schedules) == SCHEDULES_MAX else 0
    planned, unread = _read(schedules, window, now_ms=now_ms, budget_ms=budget_ms)
    totals = total_starts([(starts, scheduled.jobs) for scheduled, starts in planned], window)
    return PlannedLoad(window, totals, planned, jobs - unread, too_many, unread)


def find_starters(
    session: Session, actor: Actor, load: PlannedLoad, hours: Collection[int], *, limit: int
) -> tuple[list[Starter], int]:
    """Return the jobs with the most starts in some hours of the window, and how many jobs have any."""
    starting = sorted(
        (-count, scheduled.first_id, scheduled)
        for scheduled, starts in load.planned
        if (count := starts.count_in(hours))
    )
    most = list[tuple[int, ScheduleGroup, int]]()
    for negative, first_id, scheduled in starting[:limit]:
        ids, room = [first_id], limit - len(most)
        if scheduled.jobs > 1 and room > 1:
            ids = job_store.find_of_schedule(session, actor.group_ids(Right.VIEW), scheduled, limit=room)
        most += [(job_id, scheduled, -negative) for job_id in ids[:room]]
    names = job_store.find_names(session, [job_id for job_id, _scheduled, _count in most])
    starters = [
        Starter(names[job_id], scheduled, count) for job_id, scheduled, count in most if job_id in names
    ]
    return starters, sum(scheduled.jobs for _negative, _first, scheduled in starting)


def _read(
    schedules: list[ScheduleGroup], window: Window, *, now_ms: Millis, budget_ms: Millis
) -> tuple[list[Planned], int]:
    """Read the schedules, the most used first.

    Return those read in time, and the number of jobs of the others.
    """
    planned, unread, zone, late_ms = list[Planned](), 0, zone_name(), monotonic_ms() + budget_ms
    for number, scheduled in enumerate(schedules):
        # fixed periods cost next to nothing
        if number and scheduled.schedule_type in CACHED and monotonic_ms() >= late_ms:
            unread += scheduled.jobs
            continue
        try:
            planned.append(Planned(scheduled, _estimate(scheduled, zone, window, now_ms)))
        except (InvalidCronExpression, InvalidInput):
            pass  # the scan reports it
    return planned, unread


def _estimate(job: ScheduleGroup, config_zone: str, window: Window, now_ms: Millis) -> HourlyStarts:
    if job.schedule_type not in list(ScheduleType):
        return HourlyStarts()
    schedule = Schedule(
        ScheduleType(job.schedule_type),
        (job.schedule_conf or "").strip(),
        job.time_zone or config_zone,
        job.not_before_ms,
        job.not_after_ms,
    )
    # a fixed delay counts from the end of a run: here as if the current one ended now
    next_ms = job.next_ms if 0 < job.next_ms < AFTER_THE_CURRENT_RUN else now_ms
    return estimate_starts(schedule, next_ms, window)
