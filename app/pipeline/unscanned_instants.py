"""Unscanned instants: those that are due and that no scan has planned when a schedule changes."""

from contextlib import suppress

from app.clock import Millis
from app.domain.enums import MisfireStrategy, TriggerStatus
from app.domain.schedules.planning import MAX_COUNTED, SkippedRange
from app.errors import InvalidInput
from app.models.base import zone_name
from app.pipeline.scan import count_max_of, plan_job
from app.store.jobs.scheduling import DueJob, schedule_of


def find_unscanned(job: DueJob, *, now_ms: Millis, count_max: int = MAX_COUNTED) -> SkippedRange | None:
    """Return the due instants of an enabled job that no scan has planned; None if there are none."""
    if job.trigger_status != TriggerStatus.RUNNING or not 0 < job.trigger_next_time <= now_ms:
        return None
    first_ms = last_ms = job.trigger_next_time
    count = 1
    with suppress(ValueError, InvalidInput):  # an invalid schedule has no instant but its next time
        schedule = schedule_of(job, zone_name())
        # By RUN_ALL a plan would be for the first of them alone.
        skipping = job._replace(misfire_strategy=MisfireStrategy.DO_NOTHING.value)
        plan = plan_job(skipping, schedule, now_ms=now_ms, count_max=count_max)
        instants = [instant for instant, _ in plan.fires if instant <= now_ms]
        times = [
            *instants,
            *([plan.skipped_range.from_ms, plan.skipped_range.to_ms] if plan.skipped_range else ()),
        ]
        if not times:  # A calendar or a blackout excludes what was planned.
            return None
        count = len(instants) + (plan.skipped_range.count if plan.skipped_range else 0)
        count = min(count, count_max_of(schedule, count_max))
        first_ms, last_ms = min(times), max(times)
    return SkippedRange(first_ms, last_ms, count)
