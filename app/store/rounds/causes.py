"""Rounds that were not run because of a run."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.domain.rounds.kinds import RoundState
from app.models.job import Job
from app.models.round import Round

#: jobs that are looked at
JOBS_MAX = 500


class StoppedRound(NamedTuple):
    """A round that was not run, and its job."""

    round_id: int
    job_id: int
    group_id: int
    job_name: str


_STOPPED = (
    select(Round.id, Job.id, Job.job_group, Job.job_desc)
    .join(Job, Job.id == Round.job_id)
    .where(
        among(Round.job_id),
        Round.cause_log_id == bindparam("cause_log_id"),
        Round.state == RoundState.NOT_RUN,
    )
    .order_by(Round.id)
    .limit(bindparam("most"))
)


def find_stopped(
    session: Session, cause_log_id: int, job_ids: Collection[int], *, limit: int
) -> list[StoppedRound]:
    """Return the first rounds of these jobs that were not run because of a run."""
    if not job_ids:
        return []
    values = {WANTED: sorted(job_ids), "cause_log_id": cause_log_id, "most": limit}
    return [StoppedRound._make(row) for row in bulk.read_rows(session, _STOPPED, values)]
