"""Clock return: recalculates schedules after a clock that was ahead has been set back.

Needed if the database has no clock to compare with (SQLite), or one that was ahead with the node's, as on the
same host; otherwise such a node stops before it schedules anything. An instant that was started early does
not start again: its job continues after it. Future instants that were skipped or read ahead are scheduled
again. Other nodes may go on meanwhile: what they read ahead stays, and a job that has changed is left alone.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.planning import PRE_READ_MS, missed_until
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.errors import InvalidInput
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.node import SKEW_MAX_MS
from app.models.skip import Skip
from app.pipeline.scan import MISFIRE, PAGE, count_max_of, period_of
from app.store.base import locks
from app.store.fires import clock_return, scheduled_fires
from app.store.fires.scheduled_fires import ScheduledFire
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, schedule_of

logger = logging.getLogger(__name__)

#: largest lead of another node's clock, as both may be off by SKEW_MAX_MS; that node reads so far ahead
AHEAD_MAX_MS: Millis = 2 * SKEW_MAX_MS
SOON_MS: Millis = PRE_READ_MS + AHEAD_MAX_MS
#: checks and leases are at most this far ahead
FAR_MS: Millis = 120_000


@dataclass(frozen=True, slots=True)
class _Future:
    """Fires and skips of a job in the future."""

    fires: list[ScheduledFire] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)


@dataclass(slots=True)
class _Return:
    """A job whose future is recalculated; instants up to ``decided_ms`` are not changed."""

    job: DueJob
    decided_ms: Millis
    next_ms: Millis = AFTER_THE_CURRENT_RUN
    fire_ids: list[int] = field(default_factory=list)
    open_skips: list[int] = field(default_factory=list)
    cut_skips: list[bulk.Row] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        is_moved = (self.next_ms, self.row["last_fire_ms"]) != (
            self.job.trigger_next_time,
            self.job.last_fire_ms,
        )
        return is_moved or bool(self.fire_ids or self.open_skips or self.cut_skips)

    @property
    def row(self) -> bulk.Row:
        """The job's new times."""
        last_ms = min(self.job.last_fire_ms, self.decided_ms)
        return {"id": self.job.id, "trigger_next_time": self.next_ms, "last_fire_ms": last_ms}


def bring_back(*, zone: str, now_ms: Millis, has_seen_return: bool) -> None:
    """Bring next times, fires read ahead, checks and leases back from the future. Opens its own transactions.

    ``zone`` is the zone of schedules without one of their own. ``has_seen_return``: this process has seen the
    clock go back; otherwise, at a start, crons with only their next time in the future are left alone, as
    some depend on where a search starts. If the clock was never ahead nothing changes.
    """
    with read_scope() as session:
        returns = _recalculate_all(session, zone, now_ms, has_seen_return=has_seen_return)
    for first in range(0, len(returns), PAGE):
        page = returns[first : first + PAGE]
        transact(partial(_write, page=page))
    open_count = transact(
        lambda session: clock_return.bring_back_open(
            session, now_ms=now_ms, soon_ms=now_ms + AHEAD_MAX_MS, far_ms=now_ms + FAR_MS
        )
    )
    if returns or open_count:
        logger.warning(
            "clock set back, schedules recalculated jobs=%s open_fires=%s", len(returns), open_count
        )


def _recalculate_all(session: Session, zone: str, now_ms: Millis, *, has_seen_return: bool) -> list[_Return]:
    futures: defaultdict[int, _Future] = defaultdict(_Future)
    for fire in scheduled_fires.find_unclaimed(session, Fire.due_time > now_ms):
        futures[fire.job_id].fires.append(fire)
    for skip in clock_return.find_skips(session, after_ms=now_ms):
        futures[skip.job_id].skips.append(skip)
    soon_ms, returns = now_ms + SOON_MS, []
    affected_ids = {
        job_id
        for job_id, future in futures.items()
        if future.skips or max(fire.due_time for fire in future.fires) > soon_ms
    }
    beyond = jobs.find_beyond(session, after_ms=soon_ms)
    if not has_seen_return:
        beyond = [
            job
            for job in beyond
            if job.schedule_type != ScheduleType.CRON or job.last_fire_ms > soon_ms or job.id in affected_ids
        ]
    started_ms_by_job: dict[int, Millis] = {}
    if has_seen_return or any(
        job.last_fire_ms > soon_ms for job in beyond
    ):  # It reads the runs of two hours.
        started_ms_by_job = clock_return.find_started(session, after_ms=now_ms)
    for job in beyond:
        try:
            result = _recalculate(
                job, zone, futures[job.id], max(now_ms, started_ms_by_job.get(job.id, 0)), now_ms
            )
        except (ValueError, InvalidInput):  # The scan stops a job with an invalid schedule when it is due.
            continue
        if result.changes:
            returns.append(result)
    return returns


def _recalculate(job: DueJob, zone: str, future: _Future, started_ms: Millis, now_ms: Millis) -> _Return:
    """Recalculate the next time of one job. Raises ValueError or InvalidInput for an invalid schedule."""
    schedule = schedule_of(job, zone)
    soon_ms = now_ms + SOON_MS
    is_on = job.trigger_status == TriggerStatus.RUNNING
    # If the scan has stopped the job with the last instants of its schedule, these stay.
    decided_instants = [fire.due_time for fire in future.fires if fire.due_time <= soon_ms or not is_on]
    decided_instants += [skip.to_ms for skip in future.skips if skip.reason != MISFIRE]
    decided_instants += [job.last_fire_ms] if job.last_fire_ms <= soon_ms else []
    result = _Return(job, max([started_ms, *decided_instants]))
    reopened_instants = [
        instant for skip in future.skips if (instant := _reopen(skip, schedule, result)) is not None
    ]
    withdrawn = [fire for fire in future.fires if fire.due_time > max(result.decided_ms, soon_ms)]
    result.fire_ids = [fire.id for fire in withdrawn]
    if not is_on:
        result.next_ms = job.trigger_next_time
        return result
    if job.trigger_next_time == AFTER_THE_CURRENT_RUN and not withdrawn:
        return result
    after_ms = next_after_ms(
        schedule, now_ms if schedule.type is ScheduleType.FIX_DELAY else result.decided_ms
    )
    candidates = [job.trigger_next_time, *reopened_instants, *(fire.due_time for fire in withdrawn)]
    result.next_ms = min(candidates if after_ms is None else [*candidates, after_ms])
    return result


def _reopen(skip: Skip, schedule: Schedule, result: _Return) -> Millis | None:
    """Remove the future instants from a skip and return the first of them, or None."""
    if skip.to_ms <= result.decided_ms:
        return None
    if skip.from_ms > result.decided_ms:
        result.open_skips.append(skip.id)
        return skip.from_ms
    next_after = partial(next_after_ms, schedule)
    rest = missed_until(
        result.decided_ms,
        skip.from_ms,
        next_after,
        period_ms=period_of(schedule),
        count_max=count_max_of(schedule),
    )
    instant = next_after(rest.to_ms)
    if instant is None:
        result.decided_ms = skip.to_ms
        return None
    result.cut_skips.append({"id": skip.id, "to_ms": rest.to_ms, "skipped": rest.count})
    return instant


def _write(session: Session, page: Sequence[_Return]) -> None:
    """Write the results for jobs that have not changed since they were read, nor were their fires claimed."""
    locks.take_schedule_lock(session)
    current = jobs.lock_planned(session, [result.job.id for result in page])
    valid = [result for result in page if current.get(result.job.id) == result.job]
    fire_ids = [fire_id for result in valid for fire_id in result.fire_ids]
    fire_by_id = {fire.id: fire for fire in scheduled_fires.lock_unclaimed(session, Fire.id.in_(fire_ids))}
    valid = [result for result in valid if fire_by_id.keys() >= set(result.fire_ids)]
    bulk.update_many(session, Job, [result.row for result in valid])
    bulk.update_many(session, Skip, [row for result in valid for row in result.cut_skips])
    clock_return.delete_skips(session, [skip_id for result in valid for skip_id in result.open_skips])
    scheduled_fires.remove(session, [fire_by_id[fire_id] for result in valid for fire_id in result.fire_ids])
