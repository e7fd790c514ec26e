"""Next instants of jobs before and after an apply, and the planned ones that it withdraws."""

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.code.plan import INSTANTS, Action, ObjectPlan
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import RESTING, Schedule, next_times
from app.models.fire import Fire
from app.services.code.job_plans import JobPlan
from app.store.fires import scheduled_fires
from app.store.jobs import scheduling as jobs


def with_times(session: Session, plans: Collection[JobPlan], *, now_ms: Millis) -> list[JobPlan]:
    """Return the plans with their next instants and what they withdraw; two statements for all."""
    ids = {plan.wish.job_id for plan in plans if plan.old_schedule is not None}
    job_rows = jobs.find_planned(session, ids)
    times_by_job = find_withdrawn(session, ids)
    timed_plans = []
    for plan in plans:
        if plan.object_plan is None or (plan.old_schedule is None and plan.new_schedule is None):
            timed_plans.append(plan)
            continue
        job_id = plan.wish.job_id
        next_ms = job_rows[job_id].trigger_next_time if job_id in job_rows else 0
        object_plan = replace(
            plan.object_plan,
            next_before=_instants(plan.old_schedule, next_ms, now_ms),
            next_after=_instants(plan.new_schedule, 0, now_ms),
            withdrawn=times_by_job.get(job_id, ()),
        )
        timed_plans.append(replace(plan, object_plan=object_plan))
    return timed_plans


def deleted_times(session: Session, plans: Collection[ObjectPlan]) -> list[ObjectPlan]:
    """Return the plans of jobs to delete with the planned instants that they withdraw."""
    times = find_withdrawn(session, {plan.object_id for plan in plans})
    return [
        replace(plan, withdrawn=times.get(plan.object_id, ())) if plan.action is Action.DELETE else plan
        for plan in plans
    ]


def find_withdrawn(session: Session, job_ids: Collection[int]) -> dict[int, tuple[Millis, ...]]:
    """Return job id -> due times of the fires of its schedule that are not claimed yet."""
    due_times: dict[int, list[Millis]] = {}
    for fire in scheduled_fires.find_unclaimed(session, Fire.job_id.in_(list(job_ids))) if job_ids else []:
        due_times.setdefault(fire.job_id, []).append(fire.due_time)
    return {job_id: tuple(sorted(set(times))) for job_id, times in due_times.items()}


def _instants(schedule: Schedule | None, next_ms: Millis, now_ms: Millis) -> tuple[Millis, ...]:
    """Return the next instants; a period is counted from ``next_ms``, where that is known."""
    if schedule is None or next_ms >= RESTING:
        return ()
    is_period = schedule.type in {ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY}
    if is_period and next_ms:
        return (next_ms, *next_times(schedule, next_ms, INSTANTS - 1))
    return tuple(next_times(schedule, now_ms, INSTANTS))
