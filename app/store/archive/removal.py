"""Archived logs of runs that were deleted: their files go first, then their rows, so that no file is left."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.domain.archive.kinds import ArchiveState
from app.models.archive import LogArchive
from app.store.archive import room
from app.store.archive.room import JobOfDay, Room


class DeletedLog(NamedTuple):
    """An archived log to delete."""

    id: int
    job_id: int
    folder: str
    chunks: str
    size: int
    stored: int


_COLUMNS = (
    LogArchive.id,
    LogArchive.job_id,
    LogArchive.folder,
    func.coalesce(LogArchive.chunks, ""),
    LogArchive.size,
    LogArchive.stored,
)


def find_deleted(session: Session, *, limit: int) -> list[DeletedLog]:
    """Return archived logs whose runs were deleted."""
    query = select(*_COLUMNS).where(LogArchive.state == ArchiveState.DELETED.value)
    rows = session.execute(query.order_by(LogArchive.id).limit(limit))
    return [DeletedLog._make(row) for row in rows]


def delete_rows(session: Session, logs: Sequence[DeletedLog]) -> None:
    """Delete archived logs whose files are gone, and give their room back."""
    room_changes = ((JobOfDay.of(log.job_id, log.folder), Room(-log.size, -log.stored)) for log in logs)
    ids = [log.id for log in logs]
    if affected(session, delete(LogArchive).where(LogArchive.id.in_(ids))) == len(logs):
        room.add(session, room.total(room_changes))  # Else another node has done it.
