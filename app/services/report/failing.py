"""Failing jobs: which are failing, since when, how often in a row, and when they last succeeded.

The rule is in ``app.domain.jobs.failing``. Who needs what:

- which jobs are failing, and their last failures, for numbers and lists: ``find_failing``. Its keys are the
  ids of the failing jobs, the one that failed last first; a filter is ``Job.id.in_(list(failing))``.
- since when and how often in a row: ``of_jobs`` for the jobs of a page of a list, whose dict lacks those that
  are not failing, and ``of_job`` for one.
"""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.domain.jobs.failing import Failing, failing_of
from app.store.pickers.overview import GroupIds
from app.store.runs import failing as failing_runs
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run

#: newest runs of a job in which its last success is looked for, in a list
LOOKED_AT = 101
#: the same on the page of a job: more only if the first are all failures
LOOKED_AT_OF_ONE = (11, 501)


def find_failing(session: Session, group_ids: GroupIds) -> dict[int, Run]:
    """Return job id -> last failure of the failing jobs of these groups (None: of all), newest first."""
    return {run.job_id: run for run in failing_runs.find_last_failures(session, group_ids)}


def of_jobs(
    session: Session, job_ids: Collection[int], *, group_ids: GroupIds, looked_at: int = LOOKED_AT
) -> dict[int, Failing[Run]]:
    """Return job id -> its failures since its last success, for those of the jobs that are failing.

    Only the newest ``looked_at`` runs of each are read; those in other groups do not count.
    """
    runs_by_job = recent_runs.find_newest_of_jobs(session, job_ids, group_ids=None, limit=looked_at)
    failing_by_job = {}
    for job_id, runs in runs_by_job.items():
        visible = [run for run in runs if group_ids is None or run.job_group in group_ids]
        if failing := failing_of(visible, is_all=len(runs) < looked_at):
            failing_by_job[job_id] = failing
    return failing_by_job


def of_job(session: Session, job_id: int, *, group_ids: GroupIds) -> Failing[Run] | None:
    """Return the failures of a job since its last success; None if it is not failing."""
    failing = None
    for looked_at in LOOKED_AT_OF_ONE:
        failing = of_jobs(session, [job_id], group_ids=group_ids, looked_at=looked_at).get(job_id)
        if failing is None or not failing.is_cut:
            break
    return failing
