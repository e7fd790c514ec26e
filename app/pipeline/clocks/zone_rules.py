"""Changed time zone rules: jobs whose next time was computed with earlier rules are planned anew.

An update of the time zone data moves the instants of schedules. A next time months ahead stays that of the
earlier rules, so that the job would run then, and again at the right time.
"""

import logging
from collections.abc import Sequence
from functools import cache, partial

from sqlalchemy.orm import Session

from app.clock import DAY_MS, SECOND_MS, Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.errors import InvalidInput
from app.models.job import Job
from app.pipeline.scan import PAGE
from app.store.base import locks
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, schedule_of

logger = logging.getLogger(__name__)

#: jobs due sooner are left alone: by the new rules their instant may have passed. Rules change by more only
#: where a zone changes its date
SHIFT_MAX_MS: Millis = 10_800_000
#: other nodes may go on with earlier rules for a while, and plan by them
PERIOD_MS: Millis = DAY_MS
#: schedules of local time
_LOCAL = (ScheduleType.CRON, ScheduleType.AT)


def tick_zone_rules(now_ms: Millis, *, zone: str) -> Millis:
    """Correct next times that are no instants of their schedules; return the wait until the next round.

    Opens its own transactions. ``zone`` is the zone of schedules without one of their own.
    """
    after_ms = now_ms + SHIFT_MAX_MS
    with read_scope() as session:
        beyond = jobs.find_beyond(session, after_ms=after_ms)
    is_instant, corrections = cache(_is_instant), list[tuple[DueJob, Millis]]()
    for job in beyond:
        if job.trigger_status != TriggerStatus.RUNNING or job.trigger_next_time <= after_ms:
            continue
        schedule = schedule_of(job, zone)
        try:
            if schedule.type not in _LOCAL or is_instant(schedule, job.trigger_next_time):
                continue
            next_ms = next_after_ms(schedule, max(now_ms, job.last_fire_ms))
        except (ValueError, InvalidInput):  # The scan stops a job with an invalid schedule when it is due.
            continue
        if next_ms not in (None, job.trigger_next_time):
            corrections.append((job, next_ms))
    count = sum(
        transact(partial(_write, page=corrections[first : first + PAGE]))
        for first in range(0, len(corrections), PAGE)
    )
    if count:
        logger.warning("time zone rules changed, next times corrected jobs=%s", count)
    return PERIOD_MS


def _is_instant(schedule: Schedule, instant: Millis) -> bool:
    return next_after_ms(schedule, instant - SECOND_MS) == instant


def _write(session: Session, page: Sequence[tuple[DueJob, Millis]]) -> int:
    """Write the next times of jobs that have not changed since they were read; return how many."""
    locks.take_schedule_lock(session)
    current = jobs.lock_planned(session, [job.id for job, _ in page])
    rows = [
        {"id": job.id, "trigger_next_time": next_ms} for job, next_ms in page if current.get(job.id) == job
    ]
    bulk.update_many(session, Job, rows)
    return len(rows)
