"""Backfills that runs belong to: those whose keys give the numbers of the runs."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.domain.enums import TriggerType
from app.domain.runs.trigger_keys import backfill_key, trigger_of
from app.models.log import JobLog
from app.store.backfills import history

#: runs that may be of a backfill
_KINDS = (TriggerType.BACKFILL, TriggerType.RETRY)


def find_backfills_of(session: Session, logs: Collection[JobLog]) -> dict[int, int]:
    """Return log id -> backfill of the runs that belong to one, also as a retry.

    One that was deleted is missing.
    """
    first = history.find_first_runs(session, [log.id for log in logs if log.trigger_type in _KINDS])
    runs = {log_id: run for log_id, run in first.items() if run.trigger_type == TriggerType.BACKFILL}
    if not runs:
        return {}
    job_ids = {run.job_id for run in runs.values()}
    times = {run.logical_ms for run in runs.values() if run.logical_ms is not None}
    by_number: dict[int, int] = {}
    for job_id, logical_ms, backfill_id, attempts in history.find_of_instants(session, job_ids, times):
        for attempt in range(1, attempts + 1):
            trigger = trigger_of(job_id, backfill_key(backfill_id, logical_ms, attempt))
            if trigger is not None:
                by_number[trigger.number] = backfill_id
    pairs = ((log_id, by_number.get(run.trigger_key or 0)) for log_id, run in runs.items())
    return {log_id: backfill_id for log_id, backfill_id in pairs if backfill_id is not None}
