"""Checks of promises at the end of runs: the completion only writes them, and waits for nothing."""

from collections.abc import Iterable, Mapping

from sqlalchemy.orm import Session

from app.clock import Millis
from app.store.fires import logs
from app.store.fires.logs import RunState
from app.store.jobs.of_results import JobOfResult
from app.store.promises import checks


def check_ends(
    session: Session, runs: Iterable[RunState], job_by_id: Mapping[int, JobOfResult], *, now_ms: Millis
) -> None:
    """Insert a check for each run that has ended, of jobs that promise something about that.

    Runs of backfills count for no promise, nor do their retries.
    """
    promised_runs = [run for run in runs if (job := job_by_id.get(run.job_id)) and job.promises_ends]
    of_backfills = logs.find_of_backfills(session, {run.id: run.trigger_type for run in promised_runs})
    promised_runs = [run for run in promised_runs if run.id not in of_backfills]
    instants = {"number": 0, "logical_ms": 0, "until_ms": 0, "due_ms": now_ms}
    checks.insert_checks(
        session, [{"job_id": run.job_id, "log_id": run.id, **instants} for run in promised_runs]
    )
