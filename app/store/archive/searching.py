"""Archived logs as searches read them: newest runs first."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
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
    segment: int
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
    LogArchive.segment,
    LogArchive.chunks,
)


def find_newest(
    session: Session, criteria: LogFilter, group_ids: Collection[int] | None, *, last_id: int, limit: int
) -> list[SearchedLog]:
    """Return the newest logs up to a run that match and have lines."""
    query = _matching(criteria, group_ids).where(LogArchive.log_id <= last_id)
    return _read(session, query.order_by(LogArchive.log_id.desc()).limit(limit))


def find_among(
    session: Session, criteria: LogFilter, group_ids: Collection[int] | None, *, log_ids: Collection[int]
) -> list[SearchedLog]:
    """Return those of these logs that match and have lines, the newest first."""
    query = _matching(criteria, group_ids).where(among(LogArchive.log_id, sorted(log_ids)))
    return _read(session, query.order_by(LogArchive.log_id.desc()))


def find_bounds(session: Session, criteria: LogFilter) -> tuple[int, int] | None:
    """Return the smallest and largest id of the runs in the time of a filter; None: it names no time."""
    if criteria.from_ms is None and criteria.to_ms is None:
        return None
    times = conditions_of(LogFilter(from_ms=criteria.from_ms, to_ms=criteria.to_ms), None)
    query = select(func.min(JobLog.id), func.max(JobLog.id)).where(*times)
    first, last = bulk.read_rows(session, query)[0]
    return first or 0, last or 0


def find_start(session: Session, last_id: int) -> Millis | None:
    """Return when the newest run up to an id started; None: there is none."""
    query = select(JobLog.trigger_time).where(JobLog.id <= last_id).order_by(JobLog.id.desc()).limit(1)
    rows = bulk.read_rows(session, query)
    return rows[0][0] if rows else None


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
