"""The waiting list, for people: runs that wait for a limit, their places, and the runs that have the slots.

Every statement reads the waiting or open fires alone, of which there are few beside the log.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import HELD_BACK, FireState, LimitKind
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import LimitUse
from app.store.limits.listing import waits_for
from app.store.limits.slots import IS_OPEN
from app.store.pickers.overview import GroupIds, in_groups

#: place in the order and id of a waiting fire
Place = tuple[Millis, int]


class ListedFire(NamedTuple):
    """A waiting fire with its job."""

    id: int
    job_id: int
    group_id: int
    job_name: str
    fire_key: str
    due_ms: Millis
    #: what its run stands for
    logical_ms: Millis
    trigger_type: str
    priority: int
    state: str
    log_id: int | None
    #: place in the order; the lowest is first
    place: Millis
    #: end of its longest wait
    end_ms: Millis
    limit_key: str
    #: text of ``app.domain.limits.waits``
    waits_for: str
    admitted_ms: Millis
    chain: int | None
    #: that it waits for or belongs to
    round_id: int | None


class WaitFilter(NamedTuple):
    """Which waiting runs to list; 0 and None: all."""

    job_id: int = 0
    limit_id: int = 0
    #: first and last logical time
    logical: tuple[Millis | None, Millis | None] = (None, None)
    #: number of the trigger that asked for the chain
    chain: int | None = None
    #: leaves out runs that wait for their predecessors
    is_limited: bool = False


_LOGICAL = func.coalesce(Fire.logical_ms, Fire.due_time)
_LISTED = select(
    Fire.id,
    Fire.job_id,
    Job.job_group,
    Job.job_desc,
    Fire.fire_key,
    Fire.due_time,
    _LOGICAL,
    Fire.trigger_type,
    Job.priority,
    Fire.state,
    Fire.log_id,
    Fire.deadline_ms,
    Fire.lease_until,
    Fire.limit_key,
    Fire.waits_for,
    Fire.admitted_ms,
    Fire.chain,
    Fire.round_id,
).join(Job, Job.id == Fire.job_id)


def list_waiting(
    session: Session, criteria: WaitFilter, group_ids: GroupIds, *, after: Place | None, limit: int
) -> list[ListedFire]:
    """Return the first runs of these groups (None: all) that wait for a round or a limit, after this place.

    Those that wait for the round of their predecessors come first.
    """
    states = [FireState.WAITING] if criteria.is_limited else HELD_BACK
    query = _LISTED.where(Fire.state.in_(states), *in_groups(Job.job_group, group_ids))
    if criteria.job_id:
        query = query.where(Fire.job_id == criteria.job_id)
    if criteria.limit_id:
        query = query.where(waits_for(criteria.limit_id))
    if criteria.chain is not None:
        query = query.where(Fire.chain == criteria.chain)
    first_ms, last_ms = criteria.logical
    if first_ms is not None:
        query = query.where(first_ms <= _LOGICAL)
    if last_ms is not None:
        query = query.where(last_ms >= _LOGICAL)
    if after is not None:
        query = query.where(_is_behind(*after))
    return _rows(session, query.order_by(Fire.deadline_ms, Fire.id).limit(limit))


def find_fires(session: Session, fire_ids: Collection[int]) -> list[ListedFire]:
    """Return fires by id, in whatever state, ids ascending."""
    return _rows(session, _LISTED.where(Fire.id.in_(sorted(fire_ids))).order_by(Fire.id))


def find_positions(session: Session, limit_of: Mapping[int, int], *, last: Place) -> dict[int, int]:
    """Return fire id -> its position among all runs that wait for the same limit; one statement.

    ``limit_of``: fire id -> limit id; ``last``: the place of the last of these fires.
    """
    if not limit_of:
        return {}
    number = case(*((waits_for(limit_id), limit_id) for limit_id in sorted(set(limit_of.values()))))
    position = func.row_number().over(partition_by=number, order_by=(Fire.deadline_ms, Fire.id))
    positions = select(Fire.id.label("id"), position.label("position")).where(
        Fire.state == FireState.WAITING, Fire.deadline_ms <= last[0]
    )
    ranks = positions.subquery()
    query = select(ranks.c.id, ranks.c.position).where(ranks.c.id.in_(sorted(limit_of)))
    return {row.id: row.position for row in session.execute(query)}


class Holder(NamedTuple):
    """An open run that has slots of a limit."""

    job_id: int
    group_id: int
    job_name: str
    #: None: it has no row yet
    log_id: int | None
    state: str
    #: when it got its slots; 0: before its job had limits
    admitted_ms: Millis
    limit_key: str
    #: slots it has
    weight: int


def list_holders(session: Session, kind: LimitKind, number: int, *, limit: int) -> list[Holder]:
    """Return the first runs that have slots of a limit: by its id, or that of its job or group."""
    weight: Any = LimitUse.weight if kind is LimitKind.NAMED else literal(1)
    query = (
        select(
            Fire.job_id,
            Job.job_group,
            Job.job_desc,
            Fire.log_id,
            Fire.state,
            Fire.admitted_ms,
            Fire.limit_key,
            weight,
        )
        .join(Job, Job.id == Fire.job_id)
        .where(IS_OPEN)
    )
    match kind:
        case LimitKind.NAMED:
            query = query.join(LimitUse, LimitUse.job_id == Fire.job_id).where(LimitUse.limit_id == number)
        case LimitKind.GROUP:
            query = query.where(Job.job_group == number)
        case LimitKind.JOB:
            query = query.where(Fire.job_id == number)
    return [Holder._make(row) for row in session.execute(query.order_by(Fire.id).limit(limit))]


def find_held(session: Session, log_ids: Collection[int]) -> set[int]:
    """Return those of the runs that have ended as unresolved and hold their slots."""
    query = select(Fire.log_id).where(Fire.log_id.in_(sorted(log_ids)), Fire.state == FireState.HELD)
    return {log_id for log_id in session.scalars(query) if log_id} if log_ids else set()


def _is_behind(place: Millis, fire_id: int) -> ColumnElement[bool]:
    return or_(Fire.deadline_ms > place, and_(Fire.deadline_ms == place, Fire.id > fire_id))


def _rows(session: Session, query: Select[Any]) -> list[ListedFire]:
    return [ListedFire._make(row) for row in session.execute(query)]
