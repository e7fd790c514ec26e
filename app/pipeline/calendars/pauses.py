"""Pauses: fires that a claim finds while a blackout is on wait for its end. docs/reference/blackouts.md.

Instants of schedules are not planned in blackouts. What waits here are retries, children, runs after rounds,
runs planned for a time, missed runs, and those that have waited for a limit or a round. Such a fire is GATED.
"""

from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.engine import announce_due_fires, read_scope, transact
from app.database.rows import bulk
from app.domain.calendars.blackouts import Closure
from app.domain.enums import FireState, TriggerType
from app.models.fire import Fire
from app.store.calendars import current_book, paused_fires
from app.store.calendars.paused_fires import PAUSED
from app.store.fires import queue as fires
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun

#: an instant from before a blackout starts although one is on, if it is not later than this
LET_THROUGH_MS: Millis = MINUTE_MS
#: fires of one transaction
PAGE = 500


def pause_of(fire: PendingFire, job: JobToRun, *, now_ms: Millis) -> Closure | None:
    """Return the blackout for whose end a fire waits; None: it may start.

    One that a user has started, or that was claimed before, may; so may the shards of a broadcast that was
    claimed before the blackout, as others of them may run already.
    """
    if not job.rule_number or fire.admitted_ms or fire.attempt or fire.log_id is not None:
        return None
    if fire.sharding_param and fire.trigger_type != TriggerType.RETRY and fire.repeats_log_id is None:
        return None
    closure = current_book.of_number(job.rule_number).closure_at(job.id, job.job_group, now_ms)
    if closure is None:
        return None
    is_from_before = fire.due_time < closure.from_ms and now_ms - fire.due_time < LET_THROUGH_MS
    return None if fire.trigger_type == TriggerType.CRON and is_from_before else closure


def pause(session: Session, pairs: Sequence[tuple[PendingFire, Closure]]) -> None:
    """Have these locked fires wait for the ends of blackouts."""
    rows = [
        {
            "id": fire.id,
            "state": FireState.GATED.value,
            "waits_for": PAUSED,
            "lease_until": closure.until_ms or 0,
        }
        for fire, closure in pairs
    ]
    bulk.update_many(session, Fire, rows)


def resume(*, now_ms: Millis) -> bool:
    """Let the fires go on that no blackout holds any more; return whether any waits for one.

    Opens its own transactions.
    """
    waiting = paused_fires.find_paused_jobs()
    if not waiting:
        return False
    book = current_book.current()
    free = [job.id for job in waiting if book.closure_at(job.id, job.group_id, now_ms) is None]
    if not free:
        return True
    with read_scope() as session:
        fire_ids = paused_fires.find_paused(session, free)
    for first in range(0, len(fire_ids), PAGE):
        transact(partial(_resume, fire_ids=fire_ids[first : first + PAGE]))
    return len(free) < len(waiting) or len(fire_ids) == paused_fires.PAUSED_MAX


def _resume(session: Session, fire_ids: Sequence[int]) -> None:
    gated_fires = fires.lock_gated(session, fire_ids)
    still = paused_fires.still_paused(session, [fire.id for fire in gated_fires])
    # What they have waited for stays: an instant of a schedule is no late one therefore.
    rows = [
        {"id": fire.id, "state": FireState.PENDING.value, "owner": "", "lease_until": 0}
        for fire in gated_fires
        if fire.id in still
    ]
    bulk.update_many(session, Fire, rows)
    if rows:
        announce_due_fires(session)
