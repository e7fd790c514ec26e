"""Planned load: estimate how many runs the schedules start in the next hours, to place a new job."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms
from app.domain.access.permissions import Actor, Right
from app.domain.calendars.rule_book import RuleBook
from app.domain.calendars.ruled_starts import estimate_ruled
from app.domain.enums import ScheduleType
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.planned_starts import HourlyStarts, Window, start_minutes, total_starts
from app.domain.schedules.schedule import RESTING, Schedule
from app.errors import InvalidInput
from app.models.base import zone_name
from app.store.calendars import current_book
from app.store.executors import groups as group_store
from app.store.jobs import scheduling as job_store
from app.store.jobs import shared_schedules
from app.store.jobs.scheduling import JobName
from app.store.jobs.shared_schedules import ScheduleGroup

#: beyond this many schedules, the least used ones are not counted
SCHEDULES_MAX = 5_000
#: time spent on reading schedules; those read before are cached
BUDGET_MS: Millis = 100
#: types that are slow to read, and cached
CACHED = frozenset({ScheduleType.CRON, ScheduleType.AT})


class PlanRow(NamedTuple):
    """A schedule of a group and the starts of each of its jobs; a page has thousands."""

    group: ScheduleGroup
    schedule: Schedule
    #: next start of a fixed rate or delay
    next_ms: Millis
    starts: HourlyStarts


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    """Estimated starts, within a window, of the jobs a user may see."""

    window: Window
    #: id of an executor group -> its starts by hour
    starts: dict[int, list[int]]
    plans: list[PlanRow]
    #: jobs counted
    jobs: int
    #: jobs not counted because they run more often than hourly
    frequent: int = 0
    #: jobs not counted because there are more than SCHEDULES_MAX schedules
    too_many: int = 0
    #: jobs not counted because their schedules were not read in time
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Starter:
    """A job, its schedule, and how many runs it starts."""

    job: JobName
    group: ScheduleGroup
    starts: int


@dataclass(frozen=True, slots=True)
class Clash:
    """Minute of a window (0: its first) in which several jobs of one executor group start."""

    minute: int
    group_id: int
    jobs: int


def planned_load(
    session: Session,
    actor: Actor,
    window: Window,
    *,
    now_ms: Millis,
    budget_ms: Millis = BUDGET_MS,
    with_frequent: bool = True,
) -> PlannedLoad:
    """Estimate the starts of the enabled jobs the actor may see; a job with an invalid schedule has none.

    Jobs that run more often than hourly can be left out, if there are others.
    """
    group_ids = actor.group_ids(Right.VIEW)
    schedules = shared_schedules.find_scheduled(session, group_ids, limit=SCHEDULES_MAX)
    jobs = sum(group.jobs for group in schedules)
    too_many = (
        shared_schedules.count_scheduled(session, group_ids) - jobs if len(schedules) == SCHEDULES_MAX else 0
    )
    plans, unread = read_schedules(schedules, window, now_ms=now_ms, budget_ms=budget_ms)
    rare = [row for row in plans if not row.starts.is_frequent(window)]
    is_cut = not with_frequent and any(row.starts.hours for row in rare)
    rows = rare if is_cut else plans
    frequent = sum(row.group.jobs for row in plans) - sum(row.group.jobs for row in rows)
    by_group = defaultdict(list)
    for row in rows:
        by_group[row.group.job_group].append((row.starts, row.group.jobs))
    return PlannedLoad(
        window,
        {group_id: total_starts(pairs, window) for group_id, pairs in by_group.items()},
        rows,
        jobs - unread - frequent,
        frequent,
        too_many,
        unread,
    )


def find_starters(
    session: Session,
    actor: Actor,
    load: PlannedLoad,
    hours: Collection[int],
    *,
    limit: int,
    minute: int | None = None,
) -> tuple[list[Starter], int]:
    """Return the jobs with the most starts in some hours of the window, and how many jobs have any.

    ``minute`` limits them to those that start in it (0: the first of the window).
    """

    def count_of(plan: PlanRow) -> int:
        if minute is None:
            return plan.starts.count_in(hours)
        minutes = start_minutes(plan.schedule, plan.next_ms, plan.starts, load.window, hours)
        return round(sum(count for at, count in minutes if at == minute))

    starting = sorted(
        (-count, row.group.first_id, row.group) for row in load.plans if (count := count_of(row))
    )
    most = list[tuple[int, ScheduleGroup, int]]()
    for negative, first_id, group in starting[:limit]:
        ids, room, visible = [first_id], limit - len(most), actor.group_ids(Right.VIEW)
        if group.jobs > 1 and room > 1:
            ids = shared_schedules.find_of_schedule(session, visible, group, limit=room)
        most += [(job_id, group, -negative) for job_id in ids[:room]]
    names = job_store.find_names(session, [job_id for job_id, _group, _count in most])
    starters = [Starter(names[job_id], group, count) for job_id, group, count in most if job_id in names]
    return starters, sum(group.jobs for _negative, _first, group in starting)


def find_titles(session: Session, load: PlannedLoad) -> dict[int, str]:
    """Return the titles of the executor groups that have starts."""
    groups = group_store.find_groups(session, load.starts)
    return {group_id: group.title or group.app_name for group_id, group in groups.items()}


def minute_starts(load: PlannedLoad, hours: Collection[int]) -> dict[tuple[int, int], int]:
    """Return minute of the window, id of the group -> starts, of the minutes of some hours that have any."""
    counts = defaultdict[tuple[int, int], float](float)
    for group, schedule, next_ms, starts in load.plans:
        for minute, count in start_minutes(schedule, next_ms, starts, load.window, hours):
            counts[minute, group.job_group] += count * group.jobs
    return {place: round(count) for place, count in sorted(counts.items())}


def find_clashes(load: PlannedLoad, *, hours: int, limit: int) -> list[Clash]:
    """Return the minutes of the next hours in which most jobs of one group start, at least two."""
    counts = Counter[tuple[int, int]]()
    for group, schedule, next_ms, starts in load.plans:
        if starts.is_frequent(load.window):
            continue
        minutes = start_minutes(schedule, next_ms, starts, load.window, range(hours))
        counts.update({(at, group.job_group): group.jobs for at, _count in minutes})
    most = sorted((-jobs, place) for place, jobs in counts.items() if jobs > 1)
    return [Clash(minute, group_id, -jobs) for jobs, (minute, group_id) in most[:limit]]


def read_schedules(
    schedules: list[ScheduleGroup], window: Window, *, now_ms: Millis, budget_ms: Millis
) -> tuple[list[PlanRow], int]:
    """Read the schedules, the most used first.

    Return those read in time, and the number of jobs of the others.
    """
    plans, unread, zone, late_ms = list[PlanRow](), 0, zone_name(), monotonic_ms() + budget_ms
    book = current_book.current()
    for number, group in enumerate(schedules):
        # fixed periods cost next to nothing
        if number and group.schedule_type in CACHED and monotonic_ms() >= late_ms:
            unread += group.jobs
            continue
        if group.schedule_type not in list(ScheduleType):
            continue
        try:
            schedule, next_ms = _schedule(group, zone, book), _next_ms(group, now_ms)
            starts = estimate_ruled(schedule, next_ms, window)
            plans.append(PlanRow(group, schedule, next_ms, starts))
        except (InvalidCronExpression, InvalidInput):
            pass  # the scan reports it
    return plans, unread


def _schedule(group: ScheduleGroup, config_zone: str, book: RuleBook) -> Schedule:
    """Return the schedule of jobs; of several, blackouts of one of them or of a tag are left out."""
    job_id = group.first_id if group.jobs == 1 else 0
    return Schedule(
        ScheduleType(group.schedule_type),
        (group.schedule_conf or "").strip(),
        group.time_zone or config_zone,
        group.not_before_ms,
        group.not_after_ms,
        group.calendar or "",
        book.of_job(job_id, group.job_group, group.calendar),
    )


def _next_ms(group: ScheduleGroup, now_ms: Millis) -> Millis:
    """Return the next start; a fixed delay counts from the end of a run: here as if that ended now."""
    return group.next_ms if 0 < group.next_ms < RESTING else now_ms
