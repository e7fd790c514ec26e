"""What becomes of the instants of a schedule when it changes: those no scan has seen, those planned already, the first new one."""

from collections.abc import Mapping
from contextlib import suppress

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedule import Schedule, next_after_ms
from app.domain.texts import N_
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.skip import SKIPPED_MAX, Skip
from app.pipeline.scan import plan_job
from app.store import bulk, fires
from app.store.jobs import DueJob, lock_planned

#: a change of one of these makes the instants planned so far void
PLANNED_BY = ("schedule_type", "schedule_conf", "time_zone", "not_before_ms", "not_after_ms")


def first_instant(schedule: Schedule, last_fire_ms: Millis, *, now_ms: Millis) -> Millis:
    """Return the first instant after now that was never fired; raises InvalidInput where there is none."""
    try:
        next_ms = next_after_ms(schedule, max(now_ms, last_fire_ms))
    except ValueError as exc:
        raise InvalidInput("scheduleConf", N_("The schedule is invalid: %(reason)s", reason=exc)) from exc
    if next_ms is None:
        raise InvalidInput("scheduleConf", N_("The schedule is invalid: it never fires again"))
    return next_ms


def unscanned(job: DueJob, *, now_ms: Millis, reason: str) -> Skip | None:
    """Return the instants of a running job that are due and that no scan has seen, as one skip; None where there is none."""
    if job.trigger_status != TriggerStatus.RUNNING or not 0 < job.trigger_next_time <= now_ms:
        return None
    due_ms = last_ms = job.trigger_next_time
    count = 1
    with suppress(ValueError, InvalidInput):  # a schedule that is none: its one instant
        decided = plan_job(job, zone_name(), now_ms=now_ms)
        missed = [instant for instant, _ in decided.fires if instant <= now_ms]
        count = len(missed) + (decided.skipped.count if decided.skipped else 0)
        last_ms = max([*missed, decided.skipped.to_ms if decided.skipped else due_ms])
    return Skip(job_id=job.id, from_ms=due_ms, to_ms=last_ms, skipped=min(count, SKIPPED_MAX), reason=reason, recorded_ms=now_ms)


def replan_jobs(session: Session, schedules: Mapping[int, tuple[Schedule, Millis]], *, now_ms: Millis) -> None:
    """Void the instants of jobs that get other schedules; the caller holds their locks and writes the schedules themselves afterwards.

    ``schedules`` is job id -> (new schedule, its first instant after now): most jobs never fired later than now, so that nothing
    has to be computed while others wait.
    """
    rows = []
    stored = lock_planned(session, schedules)
    fires.withdraw_of_jobs(session, list(stored), now_ms=now_ms, reason="edited")
    out = fires.count_scheduled_out(session, list(stored))
    for job_id, job in stored.items():
        schedule, next_ms = schedules[job_id]
        skip = unscanned(job, now_ms=now_ms, reason="edited")
        last_ms = job.last_fire_ms
        if skip is not None:
            session.add(skip)
            last_ms = max(last_ms, skip.to_ms)
        if job.trigger_status != TriggerStatus.RUNNING:
            continue
        if last_ms > now_ms:
            next_ms = first_instant(schedule, last_ms, now_ms=now_ms)
        if schedule.type is ScheduleType.FIX_DELAY and out[job_id]:
            next_ms = AFTER_THE_CURRENT_RUN
        rows.append({"id": job_id, "trigger_next_time": next_ms, "last_fire_ms": last_ms})
    session.flush()
    bulk.update_many(session, Job, rows)
