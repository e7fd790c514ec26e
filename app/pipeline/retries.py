"""Retries: the fires that repeat failed runs, their parameter and their delay. Part of the completion."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import Delivery, TriggerCode, TriggerType
from app.domain.runs.logical_times import logical_of
from app.models.fire import Fire
from app.store.base.text_widths import width_of
from app.store.fires import logs
from app.store.fires import queue as fires
from app.store.fires.ended_fires import EndedFire
from app.store.fires.logs import RunState
from app.store.jobs.of_results import JobOfResult

#: bounds of the retry delay; some executors report a result before they accept the job again
RETRY_WAIT_MIN_MS: Millis = 500
RETRY_WAIT_MAX_MS: Millis = 86_400_000
#: backoff in percent with which all delays are equal
CONSTANT = 100


def param_to_repeat(session: Session, run: RunState, fire: EndedFire | None) -> str | None:
    """Return the parameter for the retry of a run; None: its job's.

    That is the case too if the log has only the beginning of it, or if the fire of the retry cannot hold it.
    """
    if fire is not None and fire.executor_param is not None:
        return fire.executor_param
    param = run.executor_param
    if param is None or logs.is_cut(session, "executor_param", param):
        return None
    return param if width_of(session, Fire, "executor_param").holds(param) else None


class Slot(NamedTuple):
    """Slots of a run that its retry takes over."""

    admitted_ms: Millis
    limit_key: str


NO_SLOT = Slot(0, "")


class FailedRun(NamedTuple):
    """A run that is retried."""

    run: RunState
    job: JobOfResult
    #: of an unresolved run, which may still be running
    slot: Slot = NO_SLOT


def slot_of(fire: EndedFire | None) -> Slot:
    """Return the slots of a run that ends."""
    return Slot(fire.admitted_ms, fire.limit_key) if fire is not None and fire.admitted_ms else NO_SLOT


def is_retried(run: RunState, job: JobOfResult, *, is_unresolved: bool) -> bool:
    """Whether a failed run is retried.

    An unresolved run is retried only if the job allows duplicates; its late failure then causes no second
    retry. A run that was killed for a newer one is not.
    """
    if run.executor_fail_retry_count <= 0 or run.is_replaced:
        return False
    if is_unresolved:
        return job.delivery == Delivery.AT_LEAST_ONCE
    return run.trigger_code != TriggerCode.UNRESOLVED or job.delivery != Delivery.AT_LEAST_ONCE


def given_up_runs(session: Session, failed: Sequence[RunState]) -> set[int]:
    """Return which of these runs have ended before, as unresolved, for a backfill.

    It may have ended by that, and must leave nothing behind. A failure that comes late is none to retry.
    """
    late = {run.id: run.trigger_type for run in failed if run.trigger_code == TriggerCode.UNRESOLVED}
    retries = [log_id for log_id, kind in late.items() if kind == TriggerType.RETRY]
    origins = logs.find_origins(session, retries) if retries else {}
    kinds = late | {log_id: origin.trigger_type for log_id, origin in origins.items()}
    return {log_id for log_id, kind in kinds.items() if kind == TriggerType.BACKFILL}


def retry_fires(session: Session, retries: Sequence[FailedRun], now_ms: Millis) -> list[fires.NewFire]:
    """Return the fires of retries, due after the interval of their job, longer each time with a backoff."""
    growing = [
        run.id for run, job, _ in retries if job.retry_interval_s and job.retry_backoff_percent != CONSTANT
    ]
    origins = logs.find_origins(session, growing)
    return [_retry(failed, origins.get(failed.run.id), now_ms) for failed in retries]


def _retry(failed: FailedRun, origin: logs.Origin | None, now_ms: Millis) -> fires.NewFire:
    run, job, slot = failed
    retries_left = run.executor_fail_retry_count
    # The count of the job may have been edited since, so that the origin's counts.
    retries_done = max((origin.retries if origin else job.executor_fail_retry_count) - retries_left, 0)
    wait_ms = job.retry_interval_s * 1000 * (job.retry_backoff_percent / 100) ** min(retries_done, 64)
    return fires.NewFire(
        f"retry:{run.id}:{retries_left}",
        job.id,
        now_ms + int(min(max(wait_ms, RETRY_WAIT_MIN_MS), RETRY_WAIT_MAX_MS)),
        TriggerType.RETRY,
        executor_param=run.executor_param,
        sharding_param=run.executor_sharding_param,
        fail_retry_count=retries_left - 1,
        logical_ms=logical_of(run),
        param_form=run.param_form,
        chain=run.chain,
        round_id=run.round_id,
        **slot._asdict(),
    )
