"""Statements on archived logs that are not kept any longer."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.archive.kinds import ArchiveState, Missing
from app.models.archive import LogArchive
from app.models.group import Group
from app.models.job import Job
from app.store.archive import room
from app.store.archive.room import JobOfDay, Room

#: states of logs that are not fetched any more and may have chunks
ENDED = (ArchiveState.COMPLETE, ArchiveState.PARTIAL)


class EndedLog(NamedTuple):
    """An archived log that is not fetched any more."""

    ended_ms: Millis
    id: int
    job_id: int
    stored: int


_COLUMNS = (LogArchive.ended_ms, LogArchive.id, LogArchive.job_id, LogArchive.stored)


def find_ended(
    session: Session, state: ArchiveState, *, after: tuple[Millis, int], before_ms: Millis, limit: int
) -> list[EndedLog]:
    """Return the logs in a state whose runs ended before a time, the oldest first; those behind ``after``."""
    ended_ms, archive_id = after
    is_behind = or_(
        LogArchive.ended_ms > ended_ms, and_(LogArchive.ended_ms == ended_ms, LogArchive.id > archive_id)
    )
    query = select(*_COLUMNS).where(
        LogArchive.state == state.value,
        LogArchive.ended_ms >= ended_ms,
        LogArchive.ended_ms < before_ms,
        is_behind,
    )
    rows = session.execute(query.order_by(LogArchive.ended_ms, LogArchive.id).limit(limit))
    return [EndedLog(*row) for row in rows]


class PurgedLog(NamedTuple):
    """An archived log whose chunks are to be deleted."""

    folder: str
    chunks: str


def purge(session: Session, archive_ids: Collection[int], *, reason: Missing) -> list[PurgedLog]:
    """Purge logs that are not fetched any more, for a reason; return those that had chunks."""
    columns = (LogArchive.id, LogArchive.job_id, LogArchive.folder, LogArchive.chunks)
    sizes = (LogArchive.size, LogArchive.stored, LogArchive.epoch)
    query = (
        select(*columns, *sizes)
        .where(LogArchive.id.in_(list(archive_ids)), LogArchive.state.in_(ENDED))
        .order_by(LogArchive.id)
        .with_for_update()
    )
    rows = session.execute(query).all() if archive_ids else []
    nothing = dict.fromkeys(("size", "stored", "last_line", "gap_from", "gap_to"), 0)
    new_values = {"state": ArchiveState.PURGED.value, "chunks": None, "reason": reason.value, **nothing}
    bulk.update_many(
        session, LogArchive, [{"id": row.id, "epoch": row.epoch + 1, **new_values} for row in rows]
    )
    room_changes = ((JobOfDay.of(row.job_id, row.folder), Room(-row.size, -row.stored)) for row in rows)
    room.add(session, room.total(room_changes))
    return [PurgedLog(row.folder, row.chunks) for row in rows if row.chunks]


def find_named(session: Session, log_ids: Sequence[int]) -> dict[int, PurgedLog]:
    """Return log id -> folder and chunks, as the rows name them."""
    query = select(LogArchive.log_id, LogArchive.folder, LogArchive.chunks)
    rows = session.execute(query.where(LogArchive.log_id.in_(list(log_ids)))) if log_ids else ()
    return {row[0]: PurgedLog(row[1], row[2] or "") for row in rows}


def own_days(session: Session, name: str) -> dict[int, int]:
    """Return job id -> days, of jobs that or whose group have some: of `log_days` or `run_days`."""
    own, of_group = getattr(Job, name), getattr(Group, name)
    days = case((own > 0, own), else_=func.coalesce(of_group, 0))
    query = select(Job.id, days).outerjoin(Group, Group.id == Job.job_group)
    return {row[0]: int(row[1]) for row in session.execute(query.where(or_(own > 0, of_group > 0)))}
