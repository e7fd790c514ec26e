"""Hand-over at a stop: gives the instants that this node has read ahead back to the schedulers' scan."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import partial

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.enums import TriggerStatus, TriggerType
from app.models.fire import Fire
from app.models.job import Job
from app.pipeline.scan import first_ahead, last_decided
from app.store.base import locks
from app.store.fires import scheduled_fires
from app.store.fires.scheduled_fires import ScheduledFire
from app.store.jobs import scheduling as jobs

logger = logging.getLogger(__name__)

#: jobs of one transaction, during which every scan waits
PAGE = 200
#: no transaction starts later than this; the rest stays planned, and the next start reads it back
HAND_BACK_S = 1.5


def hand_back(
    *, node: str, zone: str, now_ms: Millis, monotonic: Callable[[], float] = time.monotonic
) -> int:
    """Remove unclaimed fires read ahead by this node and set back their jobs' next times; return how many.

    Call it once the scheduler has stopped. Due fires stay, as a late scan would treat them as missed: other
    nodes or the next start send them. Misfires stay too: their skips are already recorded. Opens its own
    transactions.
    """
    until = monotonic() + HAND_BACK_S
    ahead = (Fire.owner == node, Fire.trigger_type == TriggerType.CRON, Fire.due_time > now_ms)
    with read_scope() as session:
        job_ids = sorted({fire.job_id for fire in scheduled_fires.find_unclaimed(session, *ahead)})
    count = 0
    for start in range(0, len(job_ids), PAGE):
        page = job_ids[start : start + PAGE]
        of_page = (*ahead, Fire.job_id.in_(page))
        count += transact(partial(_hand_back, job_ids=page, zone=zone, ahead=of_page, now_ms=now_ms))
        if monotonic() > until:
            logger.warning("hand-over out of time jobs_left=%s", len(job_ids) - start - len(page))
            break
    return count


def _hand_back(
    session: Session,
    job_ids: Collection[int],
    zone: str,
    ahead: Sequence[ColumnElement[bool]],
    now_ms: Millis,
) -> int:
    locks.take_schedule_lock(session)
    job_by_id = jobs.lock_planned(session, job_ids)
    fires_by_job: defaultdict[int, list[ScheduledFire]] = defaultdict(list)
    for fire in scheduled_fires.lock_unclaimed(session, *ahead):
        fires_by_job[fire.job_id].append(fire)
    rows: list[bulk.Row] = []
    withdrawn_fires: list[ScheduledFire] = []
    for job_id, job_fires in fires_by_job.items():
        job = job_by_id.get(job_id)
        first_ms = (
            first_ahead(job, {fire.due_time for fire in job_fires}, zone)
            if job is not None and job.trigger_status == TriggerStatus.RUNNING
            else None
        )
        if job is not None and first_ms is not None:
            # It is not just before the first instant, because an edit may add instants between.
            decided_ms = last_decided(job, first_ms, zone, now_ms=now_ms)
            rows.append({"id": job_id, "trigger_next_time": first_ms, "last_fire_ms": decided_ms})
            withdrawn_fires += [fire for fire in job_fires if fire.due_time >= first_ms]
    bulk.update_many(session, Job, rows)
    return scheduled_fires.remove(session, withdrawn_fires)
