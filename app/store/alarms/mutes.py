"""Statements on `xxl_job_mute`: mutes in force, and ended ones whose summary is due."""

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, delete, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.models.job import Job
from app.models.mute import Mute
from app.store.alarms import alarms
from app.store.pickers.overview import GroupIds, in_groups


def find_covering(session: Session, job_groups: Iterable[tuple[int, int]]) -> dict[int, list[Mute]]:
    """Return job id -> the mutes of the job and of its group, for pairs of job and group.

    Ended mutes are included until their summary is sent.
    """
    groups = dict(job_groups)
    if not groups:
        return {}
    is_of_job = and_(Mute.group_id == 0, Mute.job_id.in_(list(groups)))
    is_of_group = and_(Mute.job_id == 0, Mute.group_id.in_(set(groups.values())))
    mute_by_scope: dict[tuple[int, int], Mute] = {
        (mute.job_id, mute.group_id): mute
        for mute in session.scalars(select(Mute).where(or_(is_of_job, is_of_group)))
    }
    covering = {
        job_id: [mute_by_scope.get((job_id, 0)), mute_by_scope.get((0, group_id))]
        for job_id, group_id in groups.items()
    }
    return {
        job_id: [mute for mute in mutes if mute is not None]
        for job_id, mutes in covering.items()
        if any(mutes)
    }


def find_mute(session: Session, *, job_id: int = 0, group_id: int = 0) -> Mute | None:
    """Return the mute of a job or group, in force or ended."""
    return session.scalar(select(Mute).where(_is_of(job_id, group_id)))


def find_holding(session: Session, mute_id: int, *, now_ms: Millis) -> Mute | None:
    """Return a mute if it is in force."""
    return session.scalar(select(Mute).where(Mute.id == mute_id, Mute.until_ms > now_ms))


def list_holding(
    session: Session,
    group_ids: GroupIds,
    *,
    now_ms: Millis,
    limit: int,
    after: tuple[Millis, int] = (0, 0),
) -> list[Mute]:
    """Return the mutes in force of these groups and their jobs (None: of all), the first to end first.

    Only those behind ``after``, the end and id of a mute.
    """
    until_ms, mute_id = after
    behind = or_(Mute.until_ms > until_ms, and_(Mute.until_ms == until_ms, Mute.id > mute_id))
    query = select(Mute).outerjoin(Job, Job.id == Mute.job_id).where(Mute.until_ms > now_ms, behind)
    if group_ids is not None:
        query = query.where(
            or_(*(and_(*in_groups(column, group_ids)) for column in (Mute.group_id, Job.job_group)))
        )
    return list(session.scalars(query.order_by(Mute.until_ms, Mute.id).limit(limit)))


def save_mute(session: Session, row: dict[str, Any]) -> None:
    """Mute a job or a group, or change the end of its mute.

    A mute whose summary is being sent is continued as well, for alarms that have reached no target; without
    any, a new one starts. Concurrent callers can deadlock on MySQL: call it in ``transact``.
    """
    mute = _renew(session, row)
    if mute.until_ms <= row["since_ms"]:
        alarms.release_sent(session, mute.id)
        if not alarms.holds(session, mute.id):
            mute.since_ms = row["since_ms"]
    mute.until_ms, mute.username, mute.reason = row["until_ms"], row["username"], row["reason"]


def end_mute(session: Session, *, job_id: int, group_id: int, now_ms: Millis) -> bool:
    """End a mute now; False if none is in force."""
    return _end(session, _is_of(job_id, group_id), now_ms) > 0


def lock_holding(session: Session, mute_ids: Collection[int]) -> set[int]:
    """Lock and return those of the mutes that may hold alarms: no summary of them is sent until the commit.

    Otherwise an alarm held back by one node while another sends the summary would be lost.
    """
    if not mute_ids:
        return set()
    query = select(Mute.id).where(Mute.id.in_(list(mute_ids)), Mute.attempts == 0).order_by(Mute.id)
    return set(session.scalars(query.with_for_update(read=True)))


def has_ended(*, now_ms: Millis) -> bool:
    """Whether the summary of a mute may be due; opens its own transaction."""
    return bool(single_statement.read(_ANY_DUE, {"now_ms": now_ms}))


def take_ended(session: Session, *, owner: str, now_ms: Millis, lease_ms: Millis, limit: int) -> list[Mute]:
    """Claim mutes whose summary is due.

    A mute whose notifier has died is claimed again after its lease.
    """
    query = select(Mute).where(_is_due(now_ms)).order_by(Mute.until_ms, Mute.id).limit(limit)
    mutes = list(session.scalars(query.with_for_update(skip_locked=True)))
    for mute in mutes:
        mute.owner, mute.next_ms, mute.attempts = owner, now_ms + lease_ms, mute.attempts + 1
    session.flush()
    return mutes


def lock_taken(session: Session, mute: Mute) -> Mute | None:
    """Lock and return a claimed mute; None if it has been renewed, taken over or deleted in the meantime."""
    same = (
        Mute.id == mute.id,
        Mute.owner == mute.owner,
        Mute.attempts == mute.attempts,
        Mute.until_ms == mute.until_ms,
    )
    return session.scalar(select(Mute).where(*same).with_for_update())


def lock_renewed(session: Session, mute: Mute) -> bool:
    """Lock a claimed mute; return whether it has been renewed and not been claimed again since."""
    return (
        session.scalar(select(Mute.id).where(Mute.id == mute.id, Mute.attempts == 0).with_for_update())
        is not None
    )


def delete_mute(session: Session, mute_id: int) -> None:
    """Delete a mute."""
    affected(session, delete(Mute).where(Mute.id == mute_id))


def end_mutes(session: Session, mute_ids: Collection[int], *, now_ms: Millis) -> int:
    """End these mutes now; return how many were in force. Each is deleted once its summary is sent."""
    return _end(session, Mute.id.in_(list(mute_ids)), now_ms)


def split_off(session: Session, job_id: int, group_id: int, *, now_ms: Millis) -> None:
    """Transfer the alarms a group's mute holds of a job that leaves the group to a mute of the job itself.

    A mute inserted for this ends at once, so its summary is sent unless a mute of the new group takes the
    alarms over. Concurrent callers can deadlock: call it in ``transact``.
    """
    group_mute = session.scalar(select(Mute).where(_is_of(0, group_id)).with_for_update())
    if group_mute is None or not alarms.holds(session, group_mute.id, job_id=job_id):
        return
    row = {"job_id": job_id, "group_id": 0, "since_ms": group_mute.since_ms, "until_ms": now_ms}
    job_mute = _renew(session, row | {"username": group_mute.username, "reason": group_mute.reason})
    alarms.hand_over(session, group_mute.id, {job_id: job_mute.id})


def _renew(session: Session, row: dict[str, Any]) -> Mute:
    """Insert a mute unless there is one; lock it and reset the sending of its summary."""
    query = select(Mute).where(_is_of(row["job_id"], row["group_id"])).with_for_update()
    bulk.insert_ignore(session, Mute, [row])
    mute = session.scalar(query)
    if mute is None:  # PostgreSQL: another transaction held it at the insert and has deleted it since
        bulk.insert_ignore(session, Mute, [row])
        mute = session.scalars(query).one()
    mute.attempts, mute.owner, mute.next_ms, mute.outcome = 0, "", 0, None
    return mute


def _end(session: Session, condition: ColumnElement[bool], now_ms: Millis) -> int:
    return affected(session, update(Mute).where(condition, Mute.until_ms > now_ms).values(until_ms=now_ms))


def _is_of(job_id: int, group_id: int) -> ColumnElement[bool]:
    return and_(Mute.job_id == job_id, Mute.group_id == group_id)


def _is_due(now_ms: Millis | BindParameter[int]) -> ColumnElement[bool]:
    return and_(Mute.until_ms <= now_ms, Mute.next_ms <= now_ms)


_ANY_DUE = select(Mute.id).where(_is_due(bindparam("now_ms"))).limit(1)
