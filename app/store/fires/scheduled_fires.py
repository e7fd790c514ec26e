"""Unclaimed fires of schedules: withdrawn by edits, settled when late, handed back when the workers stop."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.database.sql.planner_hints import unindexed_on_sqlite
from app.domain.enums import HELD_BACK, FireState
from app.domain.runs.sharding import parse_shard
from app.models.fire import Fire
from app.store.fires import logs
from app.store.fires import queue as fires

#: jobs of one statement
JOBS_AT_ONCE = 5_000


class ScheduledFire(NamedTuple):
    """A fire of a schedule that was never claimed, due or waiting; with a log row if it is prepared."""

    id: int
    job_id: int
    due_time: Millis
    fire_key: str
    sharding_param: str | None
    log_id: int | None


_COLUMNS = (Fire.id, Fire.job_id, Fire.due_time, Fire.fire_key, Fire.sharding_param, Fire.log_id)
#: a fire that was claimed before must go on, or its run would never get a result
_NEVER_CLAIMED = and_(or_(Fire.log_id.is_(None), Fire.epoch == 0), Fire.trigger_type.in_(fires.SCHEDULED))
_STATES = (FireState.PENDING, *HELD_BACK)
_UNCLAIMED = and_(Fire.state.in_(_STATES), _NEVER_CLAIMED)
_LOCKED = (
    fires.by_id(select(*_COLUMNS))
    .where(among(Fire.id), unindexed_on_sqlite(Fire.state).in_(_STATES), _NEVER_CLAIMED)
    .order_by(Fire.id)
    .with_for_update()
)


def find_unclaimed(session: Session, *conditions: ColumnElement[bool]) -> list[ScheduledFire]:
    """Return the unclaimed fires of schedules that meet the conditions, without a lock, ids ascending."""
    rows = select(*_COLUMNS).where(_UNCLAIMED, *conditions).order_by(Fire.id)
    return _whole([ScheduledFire._make(row) for row in bulk.read_rows(session, rows)])


def lock_unclaimed(session: Session, *conditions: ColumnElement[bool]) -> list[ScheduledFire]:
    """Lock and return the unclaimed fires of schedules that meet the conditions.

    The caller has locked their jobs. Reads ids without a lock first, then locks by id: a locking read through
    another index locks entries before rows, a claim rows before entries. A faster claim may have replaced a
    broadcast by its shards, so the ids are read again until all are locked.
    """
    fire_by_id: dict[int, ScheduledFire] = {}
    while True:
        query = select(Fire.id).where(_UNCLAIMED, *conditions)
        fresh = [row.id for row in bulk.read_rows(session, query) if row.id not in fire_by_id]
        newly_locked = bulk.read_among(session, _LOCKED, sorted(fresh)) if fresh else []
        fire_by_id |= {row[0]: ScheduledFire._make(row) for row in newly_locked}
        if len(newly_locked) == len(fresh):
            return _whole(list(fire_by_id.values()))


def withdraw(session: Session, job_ids: Collection[int]) -> dict[int, list[Millis]]:
    """Delete the unclaimed fires of these jobs' schedules; return job id -> the due times of its fires."""
    withdrawn_fires = lock_unclaimed(session, Fire.job_id.in_(job_ids)) if job_ids else []
    remove(session, withdrawn_fires)
    times: defaultdict[int, list[Millis]] = defaultdict(list)
    for fire in withdrawn_fires:
        times[fire.job_id].append(fire.due_time)
    return dict(times)


def lock_ahead(session: Session, job_ids: Collection[int], *, after_ms: Millis) -> list[ScheduledFire]:
    """Lock and return the fires of these jobs' schedules that are PENDING and due later than ``after_ms``."""
    if not job_ids:
        return []
    is_ahead = (Fire.state == FireState.PENDING, Fire.due_time > after_ms)
    return [
        fire for page in _pages(job_ids) for fire in lock_unclaimed(session, Fire.job_id.in_(page), *is_ahead)
    ]


def find_latest_open(session: Session, job_ids: Collection[int], *, after_ms: Millis) -> dict[int, Millis]:
    """Return job id -> the latest due time of its schedule's fires that are due later than ``after_ms``."""
    latest: dict[int, Millis] = {}
    for page in _pages(job_ids):
        rows = select(Fire.job_id, func.max(Fire.due_time)).where(
            Fire.job_id.in_(page), Fire.due_time > after_ms, Fire.trigger_type.in_(fires.SCHEDULED)
        )
        latest |= {row[0]: row[1] for row in bulk.read_rows(session, rows.group_by(Fire.job_id))}
    return latest


def _pages(job_ids: Collection[int]) -> list[list[int]]:
    ids = list(job_ids)
    return [ids[first : first + JOBS_AT_ONCE] for first in range(0, len(ids), JOBS_AT_ONCE)]


def find_claimed_ahead(session: Session, job_ids: Collection[int], *, after_ms: Millis) -> Millis | None:
    """Return the latest due time, after this one, of claimed fires of these jobs' schedules, or None."""
    latest = select(func.max(Fire.due_time)).where(
        Fire.job_id.in_(job_ids),
        Fire.state == FireState.SENDING,
        Fire.due_time > after_ms,
        Fire.trigger_type.in_(fires.SCHEDULED),
    )
    return session.scalar(latest)


def remove(session: Session, locked_fires: Collection[ScheduledFire]) -> int:
    """Delete locked fires, and the log rows of prepared ones; return how many fires there were."""
    logs.delete_logs(session, [fire.log_id for fire in locked_fires if fire.log_id])
    return fires.delete_fires(session, [fire.id for fire in locked_fires])


def _whole(unclaimed_fires: Sequence[ScheduledFire]) -> list[ScheduledFire]:
    """Leave out shards of broadcasts of which a shard has been claimed: all of them run."""
    shards = Counter((fire.job_id, fire.due_time) for fire in unclaimed_fires if fire.sharding_param)
    return [fire for fire in unclaimed_fires if _total(fire) in (None, shards[fire.job_id, fire.due_time])]


def _total(fire: ScheduledFire) -> int | None:
    shard = parse_shard(fire.sharding_param)
    return shard.total if shard is not None else None
