"""Archived logs as searches read them: newest runs first."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.store.runs.listing import LogFilter, conditions_of


class SearchedLog(NamedTuple):
    """Archived log of a run, and what a hit in it shows of the run."""

    log_id: int
    job_id: int
    job_group: int
    trigger_time: Millis | None
    trigger_code: int
    handle_code: int
    killed: int
    folder: str
    #: JSON text
    chunks: str


_COLUMNS = (
    LogArchive.log_id,
    JobLog.job_id,
    JobLog.job_group,
    JobLog.trigger_time,
    JobLog.trigger_code,
    JobLog.handle_code,
    JobLog.killed,
    LogArchive.folder,
    LogArchive.chunks,
)


def find_newest(
    session: Session, criteria: LogFilter, group_ids: Collection[int] | None, *, last_id: int, limit: int
) -> list[SearchedLog]:
    """Return the newest logs up to a run that match and have lines."""
    query = _matching(criteria, group_ids).where(LogArchive.log_id <= last_id)
    return _read(session, query.order_by(LogArchive.log_id.desc()).limit(limit))


def _matching(criteria: LogFilter, group_ids: Collection[int] | None) -> Select[Any]:
    return (
        select(*_COLUMNS)
        .join(JobLog, JobLog.id == LogArchive.log_id)
        .where(LogArchive.size > 0, *_of_archive(criteria), *conditions_of(criteria, group_ids))
    )


def _of_archive(criteria: LogFilter) -> list[ColumnElement[bool]]:
    """Return the conditions that indexes of the archive serve."""
    if criteria.job_id > 0:
        return [LogArchive.job_id == criteria.job_id]
    return [LogArchive.job_group == criteria.group_id] if criteria.group_id > 0 else []


def _read(session: Session, query: Select[Any]) -> list[SearchedLog]:
    return [SearchedLog._make(row) for row in bulk.read_rows(session, query)]
