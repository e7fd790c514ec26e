"""Runs that a limit skips: their fires are deleted, and a skip says so."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import ScheduleType
from app.domain.runs.trigger_keys import trigger_of
from app.domain.schedules.planning import SkippedRange
from app.pipeline.delays import set_delayed
from app.pipeline.rounds.ends import arrive_skipped
from app.pipeline.skips import skip_row, skip_rows
from app.store.base import locks
from app.store.fires import queue as fires
from app.store.fires.queue import PendingFire
from app.store.jobs import scheduling as jobs
from app.store.jobs.skips import insert_skips

#: reason of the skip
LIMIT = "limit"


def skip_fires(
    session: Session,
    fires_to_skip: Sequence[PendingFire],
    *,
    zone: str,
    now_ms: Millis,
    reason: str = LIMIT,
    holds_jobs: bool = False,
) -> None:
    """Delete locked fires and record them as skipped; a fixed delay goes on from here.

    Unless the caller ``holds_jobs``, the next time of a job that is locked is left to ``tick_delays``.
    """
    if not fires_to_skip:
        return
    job_by_id = jobs.find_planned(session, {fire.job_id for fire in fires_to_skip})
    rows: list[bulk.Row] = []
    instants: dict[int, list[Millis]] = {}
    for fire in fires_to_skip:
        if fire.job_id not in job_by_id:
            continue
        if fire.trigger_type in fires.SCHEDULED:
            instants.setdefault(fire.job_id, []).append(fire.due_time)
        else:
            trigger = trigger_of(fire.job_id, fire.fire_key)
            row = skip_row(
                fire.job_id, SkippedRange(fire.due_time, fire.due_time, 1), reason=reason, now_ms=now_ms
            )
            number = trigger.number if trigger is not None else None
            rows.append(row | {"trigger_type": fire.trigger_type, "trigger_key": number})
    for job_id, times in instants.items():
        rows += [
            row | {"trigger_type": "", "trigger_key": None}
            for row in skip_rows(
                job_by_id[job_id], sorted(set(times)), zone=zone, reason=reason, now_ms=now_ms
            )
        ]
    insert_skips(session, rows, job_by_id)
    fires.delete_fires(session, [fire.id for fire in fires_to_skip])
    followed_ids = {job.id for job in job_by_id.values() if job.has_followers}
    arrive_skipped(session, fires_to_skip, followed_ids, reason=reason, now_ms=now_ms)
    delayed_ids = [job_id for job_id in instants if job_by_id[job_id].schedule_type == ScheduleType.FIX_DELAY]
    if delayed_ids:
        locked_ids = locks.lock_jobs(session, delayed_ids, skip_locked=not holds_jobs)
        set_delayed(session, [job.id for job in locked_ids], now_ms=now_ms)
