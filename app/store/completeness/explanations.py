"""Up to where the instants that calendars and blackouts exclude are written as skips."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.clock import HOUR_MS, Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.completeness.rule_instants import BLACKOUT, CALENDAR
from app.domain.completeness.spans import Span
from app.models.completeness import JobSpan
from app.models.skip import Skip
from app.store.completeness import spans as span_store

#: what is left of a span that ended so long ago is not written any more
ENDED_MS: Millis = HOUR_MS


class ExplainedSpan(NamedTuple):
    """A span, and up to where its excluded instants are written."""

    id: int
    explained_ms: Millis
    span: Span


def find_unexplained(
    session: Session, *, after_id: int, limit: int, with_calendar: bool, now_ms: Millis
) -> list[ExplainedSpan]:
    """Return spans with a switch that is on, and a higher id, of which instants may not be explained yet.

    ``with_calendar``: only those of jobs with a calendar.
    """
    conditions = [
        JobSpan.id > after_id,
        JobSpan.is_on == 1,
        or_(JobSpan.until_ms.is_(None), JobSpan.until_ms > now_ms - ENDED_MS),
    ]
    if with_calendar:
        conditions.append(JobSpan.calendar.is_not(None))
    query = select(JobSpan.explained_ms, *span_store.COLUMNS).where(*conditions)
    rows = bulk.read_rows(session, query.order_by(JobSpan.id).limit(limit))
    return [ExplainedSpan(row[1], row[0], span_store.span_of(row[1:])) for row in rows]


_EXPLAINED = select(JobSpan.id, JobSpan.explained_ms).where(among(JobSpan.id))


def find_explained(session: Session, span_ids: Collection[int]) -> dict[int, Millis]:
    """Return span -> up to where its excluded instants are written; the caller holds the schedule lock."""
    return {row[0]: row[1] for row in bulk.read_among(session, _EXPLAINED, list(span_ids))}


def write_explained(session: Session, pairs: Sequence[tuple[int, Millis]]) -> None:
    """Write up to where the excluded instants of spans are written."""
    bulk.update_many(session, JobSpan, [{"id": key, "explained_ms": at_ms} for key, at_ms in pairs])


class WrittenSkip(NamedTuple):
    """The latest row of excluded instants of a job."""

    id: int
    job_id: int
    to_ms: Millis
    skipped: int
    reason: str


_LATEST = (
    select(func.max(Skip.id))
    .where(among(Skip.job_id), Skip.reason.in_([CALENDAR, BLACKOUT]))
    .group_by(Skip.job_id)
)
_WRITTEN = select(Skip.id, Skip.job_id, Skip.to_ms, Skip.skipped, Skip.reason).where(Skip.id.in_(_LATEST))


def find_last_written(session: Session, job_ids: Collection[int]) -> dict[int, WrittenSkip]:
    """Return job id -> its latest row of excluded instants."""
    rows = bulk.read_among(session, _WRITTEN, sorted(job_ids)) if job_ids else ()
    return {row[1]: WrittenSkip(*row) for row in rows}
