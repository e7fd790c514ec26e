"""Statements on `xxl_job_limit`: named limits with the number and weights of the jobs that share them."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, func, join, or_, select
from sqlalchemy.orm import Session

from app.database.rows import bulk, deletion
from app.domain.enums import FireState, LimitKind
from app.domain.limits.rules import KnownLimit
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.store.limits.slots import IS_OPEN
from app.store.pickers.overview import GroupIds


class ListedLimit(NamedTuple):
    """A named limit."""

    id: int
    name: str
    #: None: jobs of all groups may use it
    group_id: int | None
    slots: int
    #: how many jobs share it
    jobs: int
    #: most slots that a run of a job takes; 0 without jobs
    max_weight: int


_JOBS = func.count(LimitUse.job_id)
_WEIGHT = func.coalesce(func.max(LimitUse.weight), 0)
#: Another program may have deleted a job without its uses.
_USES = join(LimitUse, Job, Job.id == LimitUse.job_id)
_LISTED = (
    select(Limit.id, Limit.name, Limit.group_id, Limit.slots, _JOBS, _WEIGHT)
    .outerjoin(_USES, LimitUse.limit_id == Limit.id)
    .where(Limit.kind == LimitKind.NAMED)
    .group_by(Limit.id, Limit.name, Limit.group_id, Limit.slots)
    .order_by(Limit.name)
)


#: the begin of `waits_for` that holds the id of a limit, of ten digits, and the blank behind it
_START = func.substr(Fire.waits_for, 1, 11)
_WAITING = select(_START, func.count()).where(Fire.state == FireState.WAITING).group_by(_START)


def list_named(
    session: Session, group_ids: GroupIds, *, after: str = "", limit: int | None = None
) -> list[ListedLimit]:
    """Return the named limits of all groups and of these (None: of each), by name, after this one."""
    query = _LISTED.where(*visible_to(group_ids), Limit.name > after)
    return [ListedLimit._make(row) for row in session.execute(query.limit(limit))]


def find_named(session: Session, name: str) -> ListedLimit | None:
    """Return a named limit."""
    row = session.execute(_LISTED.where(Limit.name == name)).first()
    return ListedLimit._make(row) if row is not None else None


def find_known(session: Session, names: Collection[str], group_ids: GroupIds) -> dict[str, KnownLimit]:
    """Return those of the named limits that exist, of all groups and of these (None: of each)."""
    query = select(Limit.name, Limit.id, Limit.group_id, Limit.slots).where(
        Limit.kind == LimitKind.NAMED, Limit.name.in_(sorted(names)), *visible_to(group_ids)
    )
    return {row.name: KnownLimit(*row[1:]) for row in session.execute(query)}


def lock_named(session: Session, names: Collection[str]) -> list[Limit]:
    """Lock and return those of the named limits that exist, ids ascending."""
    query = select(Limit).where(Limit.kind == LimitKind.NAMED, Limit.name.in_(sorted(names)))
    lock_query = query.order_by(Limit.id).with_for_update().execution_options(populate_existing=True)
    return list(session.scalars(lock_query))


def count_named(session: Session) -> int:
    """Return how many named limits there are."""
    query = select(func.count()).select_from(Limit).where(Limit.kind == LimitKind.NAMED)
    return session.scalar(query) or 0


def count_used(session: Session, limit_ids: Collection[int]) -> dict[int, int]:
    """Return limit id -> its slots in use, of named limits; without those of which none is."""
    query = (
        select(LimitUse.limit_id, func.sum(LimitUse.weight))
        .join(Fire, Fire.job_id == LimitUse.job_id)
        .where(LimitUse.limit_id.in_(sorted(limit_ids)), IS_OPEN)
        .group_by(LimitUse.limit_id)
    )
    return {row[0]: int(row[1]) for row in session.execute(query)} if limit_ids else {}


def count_waiting(session: Session, limit_ids: Collection[int]) -> dict[int, int]:
    """Return limit id -> number of runs that wait for it, of those for which any does; in one statement."""
    counts = Counter[int]()
    for start, count in session.execute(_WAITING) if limit_ids else ():
        number = start.partition(" ")[0]
        if number.isdecimal() and int(number) in limit_ids:
            counts[int(number)] += count
    return dict(counts)


def waits_for(limit_id: int) -> ColumnElement[bool]:
    """Return the condition that a WAITING fire waits for a limit."""
    return Fire.waits_for.like(f"{limit_id} %")


def list_users(
    session: Session, limit_id: int, *, limit: int, without_group: int | None = None
) -> list[tuple[int, str, int, int]]:
    """Return id, name, group and weight of the first jobs that share a named limit, outside of a group."""
    query = (
        select(Job.id, Job.job_desc, Job.job_group, LimitUse.weight)
        .join(LimitUse, LimitUse.job_id == Job.id)
        .where(LimitUse.limit_id == limit_id)
    )
    if without_group is not None:
        query = query.where(Job.job_group != without_group)
    return [(row[0], row[1], row[2], row[3]) for row in session.execute(query.order_by(Job.id).limit(limit))]


def delete_limits(session: Session, limit_ids: Collection[int]) -> None:
    """Delete limits, with uses by jobs that another program has deleted."""
    if limit_ids:
        deletion.by_values(session, LimitUse, "limit_id", sorted(limit_ids))
        session.execute(delete(Limit).where(Limit.id.in_(sorted(limit_ids))))


def delete_own(session: Session, kind: LimitKind, object_ids: Collection[int]) -> None:
    """Delete the limits that claims have made for these jobs or groups."""
    names = [str(object_id) for object_id in object_ids]
    ids = bulk.read_rows(session, select(Limit.id).where(Limit.kind == kind, Limit.name.in_(names)))
    delete_limits(session, [row.id for row in ids])


def delete_of_group(session: Session, group_id: int) -> None:
    """Delete the limits of a group without jobs: its named ones, and the one that claims have made."""
    delete_own(session, LimitKind.GROUP, [group_id])
    session.execute(delete(Limit).where(Limit.group_id == group_id))


def visible_to(group_ids: GroupIds) -> list[ColumnElement[bool]]:
    """Return the condition that restricts a query to limits of all groups and of these."""
    if group_ids is None:
        return []
    return [or_(Limit.group_id.is_(None), Limit.group_id.in_(sorted(group_ids)))]
