"""Last rounds and runs of jobs, for the graph."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.domain.runs.outcome import state_of
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Round
from app.store.pickers.overview import find_newest_ids

_LAST_IDS = select(func.max(Round.id)).where(among(Round.job_id)).group_by(Round.job_id)
_ROUNDS = select(Round.job_id, Round.id, Round.state).where(among(Round.id))
_RUNS = select(JobLog.job_id, JobLog.trigger_code, JobLog.handle_code, JobLog.killed).where(among(JobLog.id))


class GraphJob(NamedTuple):
    """A job as the graph shows it."""

    id: int
    job_group: int
    job_desc: str
    schedule_type: str
    trigger_status: int
    runs_after: str | None


_JOBS = select(*(getattr(Job, name) for name in GraphJob._fields)).where(among(Job.id))


def find_graph_jobs(session: Session, job_ids: Collection[int]) -> dict[int, GraphJob]:
    """Return those of the jobs that exist, by id."""
    return {row[0]: GraphJob._make(row) for row in bulk.read_rows(session, _JOBS, {WANTED: list(job_ids)})}


def find_ids_of_group(session: Session, group_id: int) -> list[int]:
    """Return the ids of the jobs of a group."""
    query = select(Job.id).where(Job.job_group == group_id).order_by(Job.id)
    return [row[0] for row in bulk.read_rows(session, query)]


def find_last_rounds(session: Session, job_ids: Collection[int]) -> dict[int, tuple[int, str]]:
    """Return job id -> id and state of its last round, of those that have any."""
    ids = [row[0] for row in bulk.read_rows(session, _LAST_IDS, {WANTED: list(job_ids)})]
    return {row[0]: (row[1], row[2]) for row in bulk.read_rows(session, _ROUNDS, {WANTED: ids})}


def find_last_run_states(session: Session, job_ids: Collection[int]) -> dict[int, str]:
    """Return job id -> state of its last run, of those that have any."""
    ids = sorted(find_newest_ids(session, job_ids))
    return {row[0]: state_of(*row[1:]) for row in bulk.read_rows(session, _RUNS, {WANTED: ids})}
