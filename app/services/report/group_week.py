"""Week of an executor group: planned starts by hour, and the jobs that start together with one of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import HOUR_MS, MINUTE_MS, Millis
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.planned_starts import HourlyStarts, Window, start_minutes, total_starts
from app.models.job import Job
from app.services.report.planned_load import PlanRow, read_schedules
from app.store.jobs import shared_schedules
from app.store.jobs.shared_schedules import ScheduleGroup

#: beyond this many schedules of a group, the least used ones are not counted
SCHEDULES_MAX = 1_000
#: time spent on reading schedules; those read before are cached
BUDGET_MS: Millis = 25


@dataclass(frozen=True, slots=True)
class GroupWeek:
    """Planned starts of the other jobs of an executor group."""

    window: Window
    #: starts by hour of the window
    starts: list[int]
    #: instant of the job -> others that start in its minute, without those more frequent than hourly
    clashes: dict[Millis, int]


def group_week(
    session: Session,
    group_id: int,
    job: Job | None,
    instants: Sequence[Millis],
    window: Window,
    *,
    now_ms: Millis,
    budget_ms: Millis = BUDGET_MS,
) -> GroupWeek:
    """Estimate the week of a group, without a job that is stored in it.

    A bounded part of the schedules is read, in a bounded time: there may be more than is counted.
    """
    schedules = shared_schedules.find_scheduled(session, [group_id], limit=SCHEDULES_MAX)
    others = [row for row in (_without(row, job) for row in schedules) if row.jobs]
    plans, _unread = read_schedules(others, window, now_ms=now_ms, budget_ms=budget_ms)
    starts = total_starts([(row.starts, row.group.jobs) for row in plans], window)
    return GroupWeek(window, starts, _clashes(plans, instants, window))


def _without(group: ScheduleGroup, job: Job | None) -> ScheduleGroup:
    """Return a schedule without one of its jobs."""
    if job is None or job.trigger_status != TriggerStatus.RUNNING or group[:8] != _schedule_of(job):
        return group
    return group._replace(jobs=group.jobs - 1)


def _schedule_of(job: Job) -> tuple[object, ...]:
    """Return the first columns of the ScheduleGroup that the job is counted in."""
    is_period = job.schedule_type in (ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY)
    return (
        job.job_group,
        job.schedule_type,
        job.schedule_conf,
        job.time_zone,
        job.not_before_ms,
        job.not_after_ms,
        job.calendar,
        job.trigger_next_time if is_period else 0,
    )


def _clashes(plans: Collection[PlanRow], instants: Sequence[Millis], window: Window) -> dict[Millis, int]:
    inside = [at_ms for at_ms in instants if window.from_ms <= at_ms < window.until_ms]
    rare = [row for row in plans if not row.starts.is_frequent(window)]
    counts = {
        at_ms: sum(row.group.jobs for row in rare if _starts_in(row, at_ms - window.from_ms, window))
        for at_ms in inside
    }
    return {at_ms: count for at_ms, count in counts.items() if count}


def _starts_in(row: PlanRow, past_ms: Millis, window: Window) -> bool:
    """Whether a schedule starts in the minute so long after the begin of the window."""
    _group, schedule, next_ms, starts = row
    minutes = start_minutes(schedule, next_ms, starts, window, [past_ms // HOUR_MS])
    return any(minute == past_ms // MINUTE_MS for minute, _count in minutes)


def own_hours(starts: HourlyStarts, window: Window) -> list[int]:
    """Return the hours of the window in which a schedule starts."""
    return [hour for hour in range(window.hours) if starts.hours >> hour & 1]
