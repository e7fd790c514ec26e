"""Statements on `xxl_job_drain`: drained addresses, which get no new runs."""

from collections.abc import Collection

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql import direct
from app.domain.executors.draining import bare_address
from app.models.drain import Drain
from app.models.fire import Fire
from app.models.log import JobLog
from app.store.base.paging import is_storable

#: drained addresses of all groups that are read at once
READ_MAX = 500
#: The statement has no parameters: the table is small, and a list of groups would cost five times as much.
_ALL = select(Drain.group_id, Drain.address).limit(READ_MAX + 1)


def find_drained(session: Session, group_ids: Collection[int]) -> dict[int, frozenset[str]]:
    """Return group id -> its drained addresses, bare; groups without any are left out.

    One small query, two for a large table.
    """
    rows = direct.read(session, _ALL, {})
    if len(rows) > READ_MAX:
        rows = bulk.read_rows(
            session, select(Drain.group_id, Drain.address).where(Drain.group_id.in_(group_ids))
        )
    addresses_by_group: dict[int, set[str]] = {}
    for group_id, address in rows:
        if group_id in group_ids:
            addresses_by_group.setdefault(group_id, set()).add(address)
    return {group_id: frozenset(addresses) for group_id, addresses in addresses_by_group.items()}


def find_of_groups(session: Session, group_ids: Collection[int]) -> list[Drain]:
    """Return the drained addresses of these groups, with user and time."""
    return list(session.scalars(select(Drain).where(Drain.group_id.in_(list(group_ids)))))


def list_before(
    session: Session, group_ids: Collection[int] | None, *, before_id: int, limit: int
) -> list[Drain]:
    """Return the newest drains of these groups (None: all), with ids below ``before_id`` (0: all)."""
    query = select(Drain) if group_ids is None else select(Drain).where(Drain.group_id.in_(list(group_ids)))
    if before_id:
        query = query.where(Drain.id < before_id)
    return list(session.scalars(query.order_by(Drain.id.desc()).limit(limit)))


def find_drain(session: Session, drain_id: int) -> Drain | None:
    """Return a drained address or None."""
    return session.get(Drain, drain_id)


def get_by_address(session: Session, group_id: int, address: str) -> Drain:
    """Return an address that is drained."""
    query = select(Drain).where(Drain.group_id == group_id, Drain.address == bare_address(address))
    return session.scalars(query).one()


def takes_no_more(session: Session, fire_id: int, address: str) -> bool:
    """Whether an address is drained for a claimed run; never for a run with addresses entered by hand.

    The executor group is that of the log row: the job may have been moved to another since the claim.
    """
    is_routed = or_(Fire.address_list.is_(None), Fire.address_list == "")
    is_drained = (
        select(Drain.id)
        .join(JobLog, JobLog.job_group == Drain.group_id)
        .join(Fire, Fire.log_id == JobLog.id)
        .where(Fire.id == fire_id, is_routed, Drain.address == bare_address(address))
    )
    return session.execute(is_drained.limit(1)).first() is not None


def insert_drain(session: Session, group_id: int, address: str, *, username: str, now_ms: Millis) -> None:
    """Insert a drained address; an existing one is left unchanged."""
    row = {
        "group_id": group_id,
        "address": bare_address(address),
        "since_ms": now_ms,
        "username": username[:64],
    }
    bulk.insert_ignore(session, Drain, [row])


def delete_drain(session: Session, group_id: int, address: str) -> bool:
    """Delete a drained address; False if there is none."""
    if not is_storable(address):
        return False
    statement = delete(Drain).where(Drain.group_id == group_id, Drain.address == bare_address(address))
    return affected(session, statement) > 0


def delete_of_group(session: Session, group_id: int) -> None:
    """Delete all drained addresses of a group, so that a later group with the same id inherits none."""
    affected(session, delete(Drain).where(Drain.group_id == group_id))
