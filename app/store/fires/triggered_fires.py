"""Unclaimed fires of triggered runs: planned for a later instant, listed, withdrawn."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import announce_due_fires
from app.database.rows import bulk
from app.domain.enums import HELD_BACK, FireState
from app.domain.runs.trigger_keys import MANUAL, ONCE
from app.models.fire import Fire
from app.models.job import Job
from app.store.fires import queue as fires
from app.store.fires.queue import PendingFire


def count_ahead(session: Session, job_id: int, *, now_ms: Millis) -> int:
    """Return how many runs are planned for a job."""
    return session.scalar(select(func.count()).select_from(Fire).where(*_ahead(job_id, now_ms))) or 0


def find_ahead(session: Session, job_id: int, *, now_ms: Millis, limit: int) -> list[tuple[str, Millis]]:
    """Return key and due time of the fires planned for a job, the next first."""
    query = select(Fire.fire_key, Fire.due_time).where(*_ahead(job_id, now_ms))
    return [(row[0], row[1]) for row in session.execute(query.order_by(Fire.due_time, Fire.id).limit(limit))]


class UnclaimedFire(NamedTuple):
    """Fire of a triggered run that waits for its first claim."""

    id: int
    job_id: int
    group_id: int
    key: str
    due_ms: Millis
    #: what its run stands for
    logical_ms: Millis
    chain: int | None
    round_id: int | None


def list_unclaimed(
    session: Session,
    *,
    group_ids: Collection[int] | None,
    job_id: int = 0,
    before: tuple[Millis, int] | None = None,
    limit: int,
    logical: tuple[Millis | None, Millis | None] = (None, None),
    chain: int | None = None,
) -> list[UnclaimedFire]:
    """Return triggered runs that no claim has taken, the last due first; of a broadcast its first shard.

    ``group_ids``: of these groups, None: of all; ``job_id`` 0: of all jobs; ``before``: due time and id;
    ``logical``: first and last logical time, None for no bound; ``chain``: of this chain.
    """
    logical_ms = func.coalesce(Fire.logical_ms, Fire.due_time)
    conditions = [
        Fire.state == FireState.PENDING,
        Fire.log_id.is_(None),
        or_(Fire.fire_key.like(f"{MANUAL}:%"), Fire.fire_key.like(f"{ONCE}:%")),
        or_(Fire.sharding_param.is_(None), Fire.sharding_param.like("0/%")),
    ]
    if group_ids is not None:
        conditions.append(Job.job_group.in_(list(group_ids)))
    if job_id:
        conditions.append(Fire.job_id == job_id)
    if chain is not None:
        conditions.append(Fire.chain == chain)
    if before is not None:
        due_ms, fire_id = before
        conditions.append(or_(Fire.due_time < due_ms, and_(Fire.due_time == due_ms, Fire.id < fire_id)))
    first_ms, last_ms = logical
    if first_ms is not None:
        conditions.append(logical_ms >= first_ms)
    if last_ms is not None:
        conditions.append(logical_ms <= last_ms)
    columns = (Fire.id, Fire.job_id, Job.job_group, Fire.fire_key, Fire.due_time, logical_ms)
    query = select(*columns, Fire.chain, Fire.round_id).join(Job, Job.id == Fire.job_id).where(*conditions)
    newest_first = query.order_by(Fire.due_time.desc(), Fire.id.desc())
    return [UnclaimedFire._make(row) for row in session.execute(newest_first.limit(limit))]


class LockedFire(NamedTuple):
    """A fire without a run that a user has locked."""

    fire: PendingFire
    #: PENDING, or WAITING for a limit
    state: str
    #: what it waits for
    waits_for: str


_LOCKED_COLUMNS = tuple(getattr(Fire, name) for name in PendingFire._fields)


def lock_unsent(session: Session, fire_ids: Collection[int]) -> list[LockedFire]:
    """Lock and return those of the fires that no claim has taken; waits for claims that have locked them."""
    if not fire_ids:
        return []
    query = fires.by_id(select(*_LOCKED_COLUMNS, Fire.state, Fire.waits_for)).where(
        Fire.id.in_(sorted(fire_ids)),
        Fire.state.in_([FireState.PENDING, *HELD_BACK]),
        Fire.log_id.is_(None),
    )
    rows = bulk.read_rows(session, query.order_by(Fire.id).with_for_update())
    return [LockedFire(PendingFire._make(row[:-2]), row[-2], row[-1]) for row in rows]


def admit(session: Session, fire_ids: Collection[int], *, now_ms: Millis) -> None:
    """Give locked fires their slots, whatever the limits have and the blackouts are, and queue them."""
    columns = {
        "state": FireState.PENDING.value,
        "owner": "",
        "admitted_ms": now_ms,
        "deadline_ms": 0,
        "lease_until": 0,
        "waits_for": "",
    }
    bulk.update_many(session, Fire, [{"id": fire_id, **columns} for fire_id in sorted(fire_ids)])
    announce_due_fires(session)


def pass_gate(session: Session, fire_ids: Collection[int]) -> None:
    """Queue locked fires that wait for the round of their predecessors, which they keep, or a missed run."""
    columns = {"state": FireState.PENDING.value, "owner": "", "waits_for": ""}
    bulk.update_many(session, Fire, [{"id": fire_id, **columns} for fire_id in sorted(fire_ids)])
    if fire_ids:
        announce_due_fires(session)


def release(session: Session, log_id: int) -> int:
    """Delete the fires that hold the slots of a run that has ended; return how many there were."""
    query = fires.by_id(select(Fire.id)).where(Fire.log_id == log_id, Fire.state == FireState.HELD)
    ids = [row.id for row in bulk.read_rows(session, query)]
    count = fires.delete_fires(session, ids)
    if count:
        announce_due_fires(session)
    return count


def _ahead(job_id: int, now_ms: Millis) -> tuple[ColumnElement[bool], ...]:
    return (
        Fire.job_id == job_id,
        Fire.state == FireState.PENDING,
        Fire.due_time > now_ms,
        Fire.fire_key.like(f"{ONCE}:%"),
    )
