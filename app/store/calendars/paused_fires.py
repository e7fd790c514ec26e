"""Fires that wait for the end of a blackout."""

from collections.abc import Collection
from typing import Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database import single_statement
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import FireState
from app.models.fire import Fire
from app.models.job import Job

#: what `waits_for` says of a fire that waits for the end of a blackout
PAUSED: Final = "blackout"
#: fires that are looked at once; the next look finds the others
PAUSED_MAX: Final = 10_000


class PausedJob(NamedTuple):
    """A job of which fires wait, and its group."""

    id: int
    group_id: int


_IS_PAUSED = (Fire.state == FireState.GATED, Fire.waits_for == PAUSED)
_JOBS = select(Fire.job_id, Job.job_group).join(Job, Job.id == Fire.job_id).where(*_IS_PAUSED).distinct()
_OF_JOBS = select(Fire.id).where(among(Fire.job_id), *_IS_PAUSED).order_by(Fire.due_time, Fire.id)
_STILL = select(Fire.id).where(among(Fire.id), Fire.waits_for == PAUSED)


def find_paused_jobs() -> list[PausedJob]:
    """Return the jobs of which fires wait for the end of a blackout; opens its own transaction."""
    return [PausedJob(*row) for row in single_statement.read(_JOBS, {})]


def find_paused(session: Session, job_ids: Collection[int]) -> list[int]:
    """Return the fires of these jobs that wait for the end of a blackout, the earliest first, PAUSED_MAX."""
    return [row[0] for row in bulk.read_among(session, _OF_JOBS.limit(PAUSED_MAX), list(job_ids))]


def still_paused(session: Session, fire_ids: Collection[int]) -> set[int]:
    """Return those of the locked fires that wait for the end of a blackout."""
    return {row[0] for row in bulk.read_among(session, _STILL, list(fire_ids))} if fire_ids else set()
