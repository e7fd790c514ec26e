"""Statements on the state of the log archive: what waits, what is not taken, how much room there is."""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.archive.kinds import FETCHED, PASSING, ArchiveMode
from app.domain.archive.pulls import AT_ONCE
from app.models.archive import ArchiveDay, LogArchive
from app.models.group import Group
from app.models.job import Job

#: logs that are looked at: counts go no further
COUNT_MAX = 100_000


class ArchiveHealth(NamedTuple):
    """State of the log archive."""

    #: logs that are due and not fetched, and since when the oldest is; 0: none is
    waiting: int
    oldest_due_ms: Millis
    #: logs that the store did not take, for lack of room or because it did not answer
    not_taken: int
    #: bytes of the files
    stored: int


def find_health(session: Session, *, now_ms: Millis) -> ArchiveHealth:
    """Return the state of the log archive."""
    due = select(LogArchive.next_ms).where(LogArchive.state.in_(FETCHED), LogArchive.next_ms <= now_ms)
    rows = due.order_by(LogArchive.next_ms).limit(COUNT_MAX).subquery()
    reasons = select(LogArchive.reason).where(LogArchive.state.in_(FETCHED)).limit(COUNT_MAX).subquery()
    parts = (
        select(func.count()).select_from(rows),
        select(func.min(func.nullif(rows.c.next_ms, AT_ONCE))),
        select(func.count()).select_from(reasons).where(reasons.c.reason.in_(PASSING)),
        select(func.sum(ArchiveDay.stored)),
    )
    row = session.execute(select(*(part.scalar_subquery() for part in parts))).one()
    return ArchiveHealth(*(int(value or 0) for value in row))


def has_mode(session: Session) -> bool:
    """Return whether a job or a group says that logs are archived."""
    on = (ArchiveMode.FAILED, ArchiveMode.ALL)
    queries = (select(model.id).where(model.log_archive.in_(on)).limit(1) for model in (Group, Job))
    return any(session.scalar(query) is not None for query in queries)
