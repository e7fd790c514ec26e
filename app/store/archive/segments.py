"""Segments of the index as rows name them: which archived logs have none yet, and which there are."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.archive.kinds import FETCHED
from app.models.archive import LogArchive


class EndedLog(NamedTuple):
    """Archived log of a run that has ended, and of which the index has nothing yet."""

    id: int
    log_id: int
    epoch: int
    folder: str
    #: JSON text
    chunks: str | None


def find_unindexed(session: Session, *, limit: int) -> list[EndedLog]:
    """Return logs of ended runs that are in no segment, the oldest runs first."""
    columns = (LogArchive.id, LogArchive.log_id, LogArchive.epoch, LogArchive.folder, LogArchive.chunks)
    query = select(*columns).where(LogArchive.segment == 0, LogArchive.state.not_in(FETCHED))
    return [
        EndedLog._make(row) for row in bulk.read_rows(session, query.order_by(LogArchive.log_id).limit(limit))
    ]


def set_segment(session: Session, logs: Sequence[EndedLog], segment: int) -> int:
    """Note the segment that has these logs, but for those that were changed meanwhile; return how many."""
    query = select(LogArchive.id, LogArchive.epoch).where(
        among(LogArchive.id, sorted(log.id for log in logs)), LogArchive.segment == 0
    )
    epochs = {row[0]: row[1] for row in bulk.read_rows(session, query.with_for_update())}
    log_ids = sorted(log.id for log in logs if epochs.get(log.id) == log.epoch)
    statement = update(LogArchive).where(among(LogArchive.id, log_ids)).values(segment=segment)
    return affected(session, statement) if log_ids else 0


class UsedSegment(NamedTuple):
    """A segment that rows name; 0: of those that are in none."""

    number: int
    #: largest id of a run in it
    newest: int


def list_segments(
    session: Session, *, last_id: int, job_id: int = 0, group_ids: Collection[int] | None = None
) -> list[UsedSegment]:
    """Return the segments with logs of a job or of groups (None: any) up to a run, newest first."""
    newest = func.max(LogArchive.log_id)
    query = select(LogArchive.segment, newest).where(LogArchive.log_id <= last_id)
    if job_id:
        query = query.where(LogArchive.job_id == job_id)
    if group_ids is not None:
        query = query.where(LogArchive.job_group.in_(sorted(group_ids)))
    query = query.group_by(LogArchive.segment).order_by(newest.desc())
    return [UsedSegment._make(row) for row in bulk.read_rows(session, query)]


def list_log_ids(session: Session, segment: int, *, last_id: int, limit: int) -> list[int]:
    """Return the newest runs up to one whose logs are in a segment."""
    query = select(LogArchive.log_id).where(LogArchive.segment == segment, LogArchive.log_id <= last_id)
    return [row[0] for row in bulk.read_rows(session, query.order_by(LogArchive.log_id.desc()).limit(limit))]


def forget_segment(session: Session, segment: int) -> int:
    """Have the logs of a segment indexed again; return how many."""
    return affected(session, update(LogArchive).where(LogArchive.segment == segment).values(segment=0))
