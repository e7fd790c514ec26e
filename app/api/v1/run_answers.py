"""Answers about runs, made of their rows."""

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy.orm import Session

from app.api.v1.schemas.limits import WaitsFor
from app.api.v1.schemas.runs import Run, RunBlackout, RunDetail
from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.enums import LimitKind, TriggerType
from app.domain.limits.waits import WaitReason
from app.domain.rounds.round_keys import in_chain
from app.domain.runs.logical_times import logical_of
from app.domain.runs.outcome import state_of
from app.domain.runs.trigger_keys import Trigger, number_text
from app.models.log import JobLog
from app.services.backfills.of_runs import find_backfills_of
from app.services.jobs.triggers import QueuedRun
from app.services.runs.planned_runs import UnclaimedRun
from app.services.runs.reasons import find_reasons
from app.services.runs.run_lookup import FoundRun
from app.services.runs.sent_parameters import sent_text
from app.services.runs.waiting import WaitedLimit, WaitingRun
from app.store.runs import listing as log_lists

#: retries and children of an answer
SUCCESSORS_MAX = 200
#: reason of a run that was skipped
SKIPPED = "skipped: a limit had no slot for it"
#: reason of a run that waits for the round of its predecessors, the end of a blackout, or a missed run
GATED, PAUSED, MISSED = "predecessors", "blackout", "missed"


def run_answers(session: Session, logs: Sequence[JobLog]) -> list[Run]:
    """Return the answers about rows; the number of statements does not depend on theirs."""
    reasons, backfills = find_reasons(session, logs), find_backfills_of(session, logs)
    return [Run(**_members(log, reasons.get(log.id, ""), backfills.get(log.id))) for log in logs]


def unclaimed_answer(run: UnclaimedRun) -> Run:
    """Return the answer about a run that no scheduler has claimed."""
    members = _waiting_members(run.trigger, run.group_id, run.due_ms, run.logical_ms)
    return Run(**members, **_chain_members(run))


def limited_answer(run: WaitingRun) -> Run:
    """Return the answer about a run that waits for a round, a limit, a blackout or a missed run."""
    return Run(
        id=run.id,
        job_id=run.job_id,
        group_id=run.group_id,
        state="waiting",
        trigger_type=run.trigger_type,
        due_at=run.due_ms,
        logical_time=run.logical_ms,
        **_wait_members(run),
        **_chain_members(run),
    )


class _InChain(Protocol):
    """A run that may be in a chain and a round."""

    @property
    def chain(self) -> int | None:
        """Number of the trigger that asked for the chain."""

    @property
    def round_id(self) -> int | None:
        """Round that it waits for or belongs to."""


def _chain_members(run: _InChain) -> dict[str, Any]:
    """Return what the answers about a run say on its chain and round."""
    chain = number_text(run.chain) if run.chain is not None and in_chain(run.chain) else None
    return {"chain": chain, "round": run.round_id}


def _wait_members(run: WaitingRun) -> dict[str, Any]:
    """Return what the answers about a waiting run say on what it waits for."""
    if run.is_gated:
        return {"reason": GATED}
    if run.is_missed:
        return {"reason": MISSED}
    if (blackout := run.blackout) is not None:
        return {"reason": PAUSED, "blackout": RunBlackout(until=blackout.until_ms, reason=blackout.reason)}
    members: dict[str, Any] = {"position": run.position, "priority": run.priority}
    if (limit := run.waits_for) is not None:
        has_name = limit.kind is LimitKind.NAMED
        members["waits_for"] = WaitsFor(
            kind=limit.kind.value,
            limit=limit.name if has_name else None,
            key=run.limit_key if limit.kind is LimitKind.JOB else "",
            reason=limit.reason.value,
            used=limit.used,
            slots=limit.slots,
            runs=[str(log_id) for log_id in limit.log_ids],
        )
        members["reason"] = _reason(limit)
    return members


def _reason(limit: WaitedLimit) -> str:
    name = {LimitKind.JOB: "the job", LimitKind.GROUP: "its executor group"}.get(limit.kind)
    name = name or f"the limit {limit.name}"
    if limit.reason is WaitReason.REPLACING:
        return "waits until the runs before it are killed"
    if limit.reason is WaitReason.BEHIND:
        return f"waits behind others for a slot of {name}"
    return f"waits for a slot of {name}: {limit.used} of {limit.slots} are taken"


def waiting_answer(run: QueuedRun) -> RunDetail:
    """Return the answer about a run that was just queued."""
    members = _waiting_members(run.trigger, run.group_id, run.trigger.due_ms, run.logical_ms)
    return RunDetail(**members, **_chain_members(run))


def _waiting_members(
    trigger: Trigger, group_id: int, due_ms: Millis | None, logical_ms: Millis | None
) -> dict[str, Any]:
    return {
        "id": trigger.id,
        "job_id": trigger.job_id,
        "group_id": group_id,
        "state": "waiting",
        "trigger_type": TriggerType.MANUAL.value,
        "due_at": due_ms,
        "logical_time": logical_ms,
    }


def detail_of(session: Session, run: FoundRun, *, actor: Actor) -> RunDetail:
    """Return the answer about one run."""
    if run.is_broadcast or not run.rows:
        return _without_row(session, run)
    (log,) = run.rows
    successors = log_lists.find_successors(
        session, log.id, group_ids=actor.group_ids(Right.VIEW), limit=SUCCESSORS_MAX
    )
    return RunDetail(
        **_members(
            log, find_reasons(session, [log]).get(log.id, ""), find_backfills_of(session, [log]).get(log.id)
        ),
        message=log.handle_msg or "",
        trace=log.trigger_msg or "",
        sent_param=sent_text(log),
        retries=[str(row.id) for row in successors if row.trigger_type == TriggerType.RETRY],
        children=[str(row.id) for row in successors if row.trigger_type == TriggerType.PARENT],
    )


def _without_row(session: Session, run: FoundRun) -> RunDetail:
    """Return the answer about a run that waits, or about all shards of a broadcast."""
    shards = run_answers(session, run.rows)
    starts = [shard.started_at for shard in shards if shard.started_at is not None]
    ends = [shard.ended_at for shard in shards if shard.ended_at is not None]
    members: dict[str, Any] = {
        "id": run.id,
        "job_id": run.job_id,
        "group_id": run.group_id,
        "state": run.state,
        "trigger_type": run.trigger_type,
        "due_at": run.due_ms,
        "logical_time": run.logical_ms,
        "started_at": min(starts, default=None),
        "ended_at": max(ends, default=None) if run.has_ended else None,
        "reason": next((shard.reason for shard in shards if shard.reason), ""),
        "shards": shards,
        **_chain_members(run),
    }
    if run.skipped:
        members["reason"] = SKIPPED
    if run.waiting is not None:
        members |= _wait_members(run.waiting)
    return RunDetail(**members)


def _members(log: JobLog, reason: str, backfill_id: int | None) -> dict[str, Any]:
    return {
        "id": str(log.id),
        "job_id": log.job_id,
        "group_id": log.job_group,
        "state": state_of(log.trigger_code, log.handle_code, log.killed),
        "trigger_type": log.trigger_type or "",
        "handler": log.executor_handler or "",
        "param": log.executor_param or "",
        "address": log.executor_address or "",
        "shard": log.executor_sharding_param or "",
        "scheduled_at": log.fire_time,
        "logical_time": logical_of(log),
        "started_at": log.started_ms,
        "ended_at": log.ended_ms,
        "duration_ms": log.duration_ms,
        "retries_left": log.executor_fail_retry_count,
        "source_id": str(log.source_log_id) if log.source_log_id else None,
        "reason": reason,
        "backfill": backfill_id,
        **_chain_members(log),
    }
