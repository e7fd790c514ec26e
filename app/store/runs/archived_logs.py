"""Archived logs of runs that are deleted: the clean-up of the archive deletes files and rows afterwards."""

from collections.abc import Collection

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.domain.archive.kinds import ArchiveState
from app.models.archive import LogArchive


def mark_deleted(session: Session, log_ids: Collection[int]) -> None:
    """Have the archived logs of runs deleted, in the transaction that deletes the runs.

    A pull in progress stores nothing after that.
    """
    columns = {"state": ArchiveState.DELETED.value, "next_ms": 0, "epoch": LogArchive.epoch + 1}
    affected(session, update(LogArchive).where(LogArchive.log_id.in_(list(log_ids))).values(columns))
