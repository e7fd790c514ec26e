"""Fires of runs that end: they are deleted, but for those of unresolved runs, which hold their slots."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy.orm import Session

from app.database.engine import announce_backfills, announce_due_fires
from app.domain.enums import TriggerType
from app.pipeline.retries import is_retried
from app.store.fires import ended_fires
from app.store.fires.ended_fires import EndedFire
from app.store.fires.logs import RunState
from app.store.jobs.of_results import JobOfResult

#: runs with whose ends backfills go on
OF_BACKFILLS = (TriggerType.BACKFILL, TriggerType.RETRY)


def end_fires(
    session: Session,
    runs: Sequence[RunState],
    unresolved_ids: Collection[int],
    job_by_id: Mapping[int, JobOfResult],
) -> dict[int, EndedFire]:
    """End the fires of runs; return them by log id. The caller holds the locks of the log rows.

    An unresolved run may still be running: its fire holds the slots until a late result, unless a retry takes
    them over.
    """
    holding_ids = [
        run.id
        for run in runs
        if run.id in unresolved_ids
        and (job := job_by_id.get(run.job_id)) is not None
        and not is_retried(run, job, is_unresolved=True)
    ]
    slot_holders = ended_fires.hold_slots(session, holding_ids) if holding_ids else {}
    fire_by_log_id = ended_fires.end_of_logs(session, [run.id for run in runs if run.id not in slot_holders])
    has_freed = any(fire.admitted_ms for fire in fire_by_log_id.values())
    fire_by_log_id |= slot_holders
    # Others may wait for the slots, or for the end of a missed run.
    if has_freed or any(fire.trigger_type == TriggerType.MISFIRE for fire in fire_by_log_id.values()):
        announce_due_fires(session)
    if any(fire.trigger_type in OF_BACKFILLS for fire in fire_by_log_id.values()):
        announce_backfills(session)
    return fire_by_log_id
