"""Statements on `xxl_job_limit_use`: which named limits jobs share, with their weights."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.models.job import Job
from app.models.limit import LimitUse


class LimitedJob(NamedTuple):
    """A job with the text of its named limits."""

    id: int
    group_id: int
    #: JSON text; None: it has none
    limits: str | None


_LIMITS_OF = select(Job.id, Job.job_group, Job.limits).where(among(Job.id)).order_by(Job.id)


def read_limits(session: Session, job_ids: Collection[int]) -> list[LimitedJob]:
    """Return these jobs with the texts of their limits, ids ascending."""
    session.flush()
    return [LimitedJob(*row) for row in bulk.read_among(session, _LIMITS_OF, sorted(job_ids))]


def replace_uses(session: Session, job_ids: Collection[int], rows: Sequence[bulk.Row]) -> None:
    """Store what these jobs use in place of what they used; the caller has locked them."""
    session.execute(delete(LimitUse).where(LimitUse.job_id.in_(sorted(job_ids))))
    bulk.insert_many(session, LimitUse, rows)
