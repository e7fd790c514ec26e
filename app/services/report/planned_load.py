"""How many runs the schedules start in the hours to come, to find a quiet place for a new job."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms
from app.domain.cron.fields import InvalidCronExpression
from app.domain.enums import ScheduleType
from app.domain.permissions import Actor, Right
from app.domain.planned_starts import (
    CronStarts,
    RepeatedStarts,
    Window,
    bounded_starts,
    counts_in,
    cron_starts,
    repeated_starts,
    single_start,
    total_starts,
)
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN
from app.store import jobs as job_store
from app.store.jobs import JobName, Scheduled

#: of more schedules than so many, those of fewest jobs are not counted
SCHEDULES_MAX = 5_000
#: schedules are read for about so long; one read before is read quickly again
BUDGET_MS: Millis = 100
#: what is kept once it is read, because reading takes its time
READ_ONCE = frozenset({ScheduleType.CRON, ScheduleType.AT})


class Planned(NamedTuple):
    """The starts of each of the jobs that have one schedule; thousands are made for one page."""

    scheduled: Scheduled
    starts: CronStarts | RepeatedStarts


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """What the jobs a user may see start within a window."""

    window: Window
    #: by quarter of an hour
    starts: list[int]
    planned: list[Planned]
    #: jobs that are counted
    jobs: int
    #: jobs that are not, because there are more than SCHEDULES_MAX schedules
    too_many: int
    #: jobs that are not, because their schedules were not read in time
    unread: int


@dataclass(frozen=True, slots=True)
class Starter:
    """A job, its schedule, and how many runs it starts."""

    job: JobName
    #: its schedule
    scheduled: Scheduled
    starts: int


def planned_load(
    session: Session, actor: Actor, window: Window, *, now_ms: Millis, budget_ms: Millis = BUDGET_MS
) -> PlannedLoad:
    """Count the starts of the enabled jobs the actor may see.

    One whose schedule cannot be read starts none.
    """
    group_ids = actor.group_ids(Right.VIEW)
    found = job_store.find_scheduled(session, group_ids, limit=SCHEDULES_MAX)
    jobs = sum(each.jobs for each in found)
    too_many = job_store.count_scheduled(session, group_ids) - jobs if len(found) == SCHEDULES_MAX else 0
    planned, unread = _read(found, window, now_ms=now_ms, budget_ms=budget_ms)
    crons = [(each.starts, each.scheduled.jobs) for each in planned if isinstance(each.starts, CronStarts)]
    repeated = [
        each.starts
        for each in planned
        if isinstance(each.starts, RepeatedStarts)
        for _job in range(each.scheduled.jobs)
    ]
    return PlannedLoad(
        window, total_starts(crons, repeated, window), planned, jobs - unread, too_many, unread
    )


def find_starters(
    session: Session, actor: Actor, load: PlannedLoad, quarters: Collection[int], *, limit: int
) -> tuple[list[Starter], int]:
    """Return the jobs that start most runs in some quarters, and how many jobs start any."""
    counts = counts_in((each.starts for each in load.planned), quarters, load.window)
    starting = sorted(
        (-count, each.scheduled.first_id, each.scheduled)
        for count, each in zip(counts, load.planned, strict=True)
        if count
    )
    most = list[tuple[int, Scheduled, int]]()
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
    found: list[Scheduled], window: Window, *, now_ms: Millis, budget_ms: Millis
) -> tuple[list[Planned], int]:
    """Read the schedules, those of most jobs first.

    Return what was read in time, and how many jobs were not.
    """
    planned, unread, zone, late_ms = list[Planned](), 0, zone_name(), monotonic_ms() + budget_ms
    for number, scheduled in enumerate(found):
        # fixed periods cost next to nothing, so none has to wait
        if number and scheduled.schedule_type in READ_ONCE and monotonic_ms() >= late_ms:
            unread += scheduled.jobs
            continue
        try:
            planned.append(Planned(scheduled, _starts(scheduled, zone, window, now_ms)))
        except (InvalidCronExpression, InvalidInput):
            pass  # the scan sets it aside
    return planned, unread


def _starts(job: Scheduled, config_zone: str, window: Window, now_ms: Millis) -> CronStarts | RepeatedStarts:
    conf, zone = (job.schedule_conf or "").strip(), job.time_zone or config_zone
    # a fixed delay counts from the end of a run: here as if the present one ended now and the next ones took
    # no time
    next_ms = job.next_ms if 0 < job.next_ms < AFTER_THE_CURRENT_RUN else now_ms
    if job.not_before_ms >= window.until_ms or 0 < job.not_after_ms < window.from_ms:
        return CronStarts()
    match job.schedule_type:
        case ScheduleType.CRON:
            if job.not_before_ms <= window.from_ms and not 0 < job.not_after_ms < window.until_ms:
                return cron_starts(conf, zone, window)
            return bounded_starts(conf, zone, job.not_before_ms, job.not_after_ms, window)
        case ScheduleType.FIX_RATE | ScheduleType.FIX_DELAY:
            return repeated_starts(
                conf, next_ms, window, not_before_ms=job.not_before_ms, not_after_ms=job.not_after_ms
            )
        case ScheduleType.AT:
            return single_start(conf, zone, job.not_before_ms, job.not_after_ms, window)
        case _:
            return CronStarts()
