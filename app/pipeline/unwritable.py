"""Unwritable fires: the database refuses their data, so that no claim succeeds, and their runs end unsent.

Their log rows have no texts of the job, since one of them may be what is refused.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import NotStarted, TriggerCode
from app.domain.runs.trace_templates import UNWRITABLE, write
from app.domain.runs.trigger_report import join_lines, one_line
from app.models.fire import Fire
from app.pipeline.claim_trace import trace_trigger
from app.pipeline.claimed_run import bare_row
from app.pipeline.complete import Result, Source, complete
from app.store.fires import logs, prepared_fires
from app.store.fires import queue as fires
from app.store.fires.queue import PendingFire
from app.store.jobs import scheduling as jobs


class UnwritableFire(NamedTuple):
    """A fire and why its claims have failed."""

    fire_id: int
    reason: str


class RefusedRun(NamedTuple):
    """Run of an unwritable fire, which has ended."""

    job_id: int
    log_id: int
    reason: str


def refuse(
    session: Session, unwritable_fires: Sequence[UnwritableFire], *, zone: str, now_ms: Millis
) -> list[RefusedRun]:
    """End the runs of the fires that are still PENDING, or WAITING, with alarm and retries; return them.

    One that may have been sent earlier ends as unresolved. Works in the caller's transaction.
    """
    reasons = {fire_id: one_line(reason) for fire_id, reason in unwritable_fires}
    pending = prepared_fires.undo(session, fires.lock_unsent(session, [*reasons]))
    job_by_id = jobs.find_to_run(session, {fire.job_id for fire in pending})
    pending = [fire for fire in pending if fire.job_id in job_by_id]
    new = [fire for fire in pending if fire.log_id is None]
    log_ids = logs.insert_logs(session, [bare_row(fire, job_by_id[fire.job_id], now_ms) for fire in new])
    new_log_ids = {fire.id: log_id for fire, log_id in zip(new, log_ids, strict=True)}
    bulk.update_many(
        session, Fire, [{"id": fire_id, "log_id": log_id} for fire_id, log_id in new_log_ids.items()]
    )
    run_by_fire = {
        fire.id: RefusedRun(fire.job_id, fire.log_id or new_log_ids[fire.id], reasons[fire.id])
        for fire in pending
    }
    results = [_result(fire, run_by_fire[fire.id], zone) for fire in pending]
    complete(session, results, now_ms=now_ms, holds_fires=True)
    return [*run_by_fire.values()]


def _result(fire: PendingFire, run: RefusedRun, zone: str) -> Result:
    trace = write(UNWRITABLE, reason=run.reason)
    if fire.attempt > 0:
        return Result(run.log_id, Source.RESOLVER, trigger_code=TriggerCode.UNRESOLVED, trace=trace)
    cause = trace_trigger(fire.trigger_type, fire.due_time, zone, seen_by=fire.owner)
    trace, not_started = join_lines(cause, trace), NotStarted.PARAMETER.value
    code = TriggerCode.REFUSED
    return Result(run.log_id, Source.REFUSED, trigger_code=code, trace=trace, not_started=not_started)
