"""Statements on `xxl_job_skip`: instants that were due and deliberately not fired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import call_at_commit
from app.database.rows import bulk
from app.domain.enums import EndReason
from app.models.job import Job
from app.models.skip import Skip
from app.runtime.metrics import FIRES_SKIPPED
from app.store.jobs.scheduling import DueJob
from app.store.pickers.overview import GroupIds, in_groups


def list_skips(session: Session, job_id: int, *, limit: int = 20) -> list[Skip]:
    """Return the newest skips of a job."""
    newest = (
        select(Skip)
        .where(Skip.job_id == job_id)
        .order_by(Skip.recorded_ms.desc(), Skip.id.desc())
        .limit(limit)
    )
    return list(session.scalars(newest))


@dataclass(frozen=True, slots=True)
class SkipFilter:
    """Filter of the skips, newest first; None: all. ``from_ms`` and ``to_ms``: with instants between them."""

    job_id: int | None = None
    from_ms: Millis | None = None
    to_ms: Millis | None = None
    #: id of the skip before the first of a page
    after_id: int | None = None


def list_from(session: Session, criteria: SkipFilter, *, group_ids: GroupIds, limit: int) -> list[Skip]:
    """Return the next skips of jobs of these groups (None: of all), the last recorded first."""
    query = select(Skip)
    if criteria.job_id is not None:
        query = query.where(Skip.job_id == criteria.job_id)
    if criteria.from_ms is not None:
        query = query.where(Skip.to_ms >= criteria.from_ms)
    if criteria.to_ms is not None:
        query = query.where(Skip.from_ms <= criteria.to_ms)
    if criteria.after_id is not None:
        query = query.where(Skip.id < criteria.after_id)
    if group_ids is not None:
        query = query.join(Job, Job.id == Skip.job_id).where(*in_groups(Job.job_group, group_ids))
    return list(session.scalars(query.order_by(Skip.id.desc()).limit(limit)))


def find_recent(session: Session, group_ids: GroupIds, *, since_ms: Millis, limit: int) -> list[Skip]:
    """Return the skips since then of jobs of these groups (None: of all), oldest first.

    Searches the newest ``limit`` skips.
    """
    newest = select(Skip.id).order_by(Skip.id.desc()).limit(limit).subquery()
    query = select(Skip).join(newest, newest.c.id == Skip.id).where(Skip.to_ms >= since_ms)
    if group_ids is not None:
        query = query.join(Job, Job.id == Skip.job_id).where(*in_groups(Job.job_group, group_ids))
    return list(session.scalars(query.order_by(Skip.from_ms, Skip.id)))


def has_restored(session: Session, *, since_ms: Millis) -> bool:
    """Whether instants since then were skipped because the database was restored from a backup."""
    condition = (
        (Skip.to_ms >= since_ms) & (Skip.recorded_ms >= since_ms) & (Skip.reason == EndReason.RESTORED)
    )
    return session.scalar(select(Skip.id).where(condition).limit(1)) is not None


def insert_skips(session: Session, rows: Sequence[bulk.Row], job_by_id: Mapping[int, DueJob]) -> None:
    """Insert skips of these jobs, and count them."""
    bulk.insert_many(session, Skip, rows)
    for row in rows:
        group = job_by_id[row["job_id"]].job_group
        call_at_commit(session, partial(FIRES_SKIPPED.add, str(group), row["reason"], count=row["skipped"]))
