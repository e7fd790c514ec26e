"""Preparation: routes and logs scheduled fires shortly before they are due; their claim only marks them.

docs/reference/pipeline.md, section 3. A prepared fire is still PENDING: whatever withdraws fires of schedules
withdraws it together with its log row, and any node may claim it, as if it were not prepared. What the claim
relies on is checked at the claim: a fire is claimed as it was prepared only if neither its row, its job, its
group nor the drained addresses have changed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import claims_paused
from app.database.rows import bulk
from app.domain.schedules.planning import DueFire
from app.executors.addresses import storable
from app.models.base import as_stored
from app.models.fire import Fire
from app.pipeline.calendars.pauses import pause_of
from app.pipeline.claim_trace import trace_claim
from app.pipeline.claimed_run import CLAIM_AHEAD_MS, ClaimedRun, Claimer, RunRow, claimed_run, log_row
from app.pipeline.fill import fill_parameters, is_filled, write_run_ids
from app.pipeline.gate import needs_slots
from app.pipeline.group_candidates import find_group_candidates
from app.pipeline.rounds.gate import needs_round
from app.pipeline.route import RoutedFire, begin_routing, route_fire
from app.store.fires import logs, prepared_fires
from app.store.fires import queue as fires
from app.store.fires.logs import UnfinishedRun
from app.store.fires.queue import PendingFire
from app.store.jobs import scheduling as jobs

#: A job edited within this time is not prepared, because a second edit might not change its edit time: it is
#: in whole seconds, and that of a request that may have waited for a lock. Nor is a job edited at an unknown
#: time.
EDITED_MS: Millis = 10_000
#: longest parameter and source, in characters, of a request that is prepared: it stays in memory
PREPARED_BODY_MAX = 4_096


class PreparedFire(NamedTuple):
    """A routed and logged fire that is not due yet; ``claim`` lacks the trace of its claim."""

    routed_fire: RoutedFire
    claim: ClaimedRun
    #: when the job was edited last; never 0, which stands for unknown
    edited_ms: Millis


#: no fires
NONE_PREPARED: Mapping[int, PreparedFire] = MappingProxyType({})


def prepare(
    session: Session, ahead: Sequence[DueFire], claimer: Claimer, *, now_ms: Millis
) -> dict[int, PreparedFire]:
    """Prepare those of the fires that were never claimed and need neither a probe nor slots, by fire id.

    Works in the caller's transaction.
    """
    if claims_paused(session, now_ms=now_ms):
        return {}
    new = [fire for fire in fires.lock_pending(session, [fire.id for fire in ahead]) if _is_new(fire)]
    edited_ms_by_job = jobs.find_edited(session, {fire.job_id for fire in new})
    job_by_id = jobs.find_to_run(
        session,
        [job_id for job_id, edited_ms in edited_ms_by_job.items() if 0 < edited_ms < now_ms - EDITED_MS],
    )
    pairs = [(fire, job_by_id[fire.job_id]) for fire in new if fire.job_id in job_by_id]
    candidates_by_group = find_group_candidates(session, pairs, now_ms=now_ms)
    routes = begin_routing(session, claimer.routes, job_by_id)
    routed_fires = [
        routed_fire
        for fire, job in pairs
        if (candidates := candidates_by_group[job.job_group])
        and not needs_slots(fire, job, candidates)
        and not needs_round(fire, job)
        and pause_of(fire, job, now_ms=max(now_ms, fire.due_time)) is None
        and (routed_fire := route_fire(session, fire, job, candidates, routes)) is not None
        and storable(routed_fire.address) is not None
        and routed_fire.shard is None
    ]
    filling = fill_parameters(session, routed_fires, {}, zone=claimer.zone)
    # One that cannot be filled in is left to the claim, which ends it.
    filling.routed_fires = sorted(
        (item for item in filling.routed_fires if item.fire.id not in filling.reasons), key=is_filled
    )
    log_ids = logs.insert_logs(
        session, [log_row(routed_fire, routed_fire.fire.due_time) for routed_fire in filling.routed_fires]
    )
    fire_ids = [routed_fire.fire.id for routed_fire in filling.routed_fires]
    routed_fires = write_run_ids(session, filling, dict(zip(fire_ids, log_ids, strict=True)))
    rows = [
        {"id": routed_fire.fire.id, "log_id": log_id, "address": routed_fire.address}
        for routed_fire, log_id in zip(routed_fires, log_ids, strict=True)
    ]
    bulk.update_many(session, Fire, rows)
    return {
        routed_fire.fire.id: PreparedFire(
            routed_fire, _claim_of(routed_fire, log_id, claimer), edited_ms_by_job[routed_fire.job.id]
        )
        for routed_fire, log_id in zip(routed_fires, log_ids, strict=True)
    }


def _is_new(fire: PendingFire) -> bool:
    return fire.log_id is None and not fire.epoch and fire.trigger_type in fires.SCHEDULED


def _claim_of(routed_fire: RoutedFire, log_id: int, claimer: Claimer) -> ClaimedRun:
    row = RunRow(log_id, UnfinishedRun(as_stored(routed_fire.fire.due_time), None), is_remembered=False)
    run = claimed_run(routed_fire, row, claimer)
    is_short = len(run.request.executor_params) + len(run.request.glue_source) <= PREPARED_BODY_MAX
    body = run.content_for(run.address or "") if is_short and run.parameter is None else None
    return run._replace(prepared_body=body, has_new_id=False)


class StartResult(NamedTuple):
    """Result of a start: claimed runs, and prepared fires whose address has no capacity."""

    claims: list[ClaimedRun]
    parked_fires: list[PreparedFire]


def start(
    session: Session,
    ready: Sequence[PreparedFire],
    claimer: Claimer,
    used_slots: Counter[str],
    *,
    now_ms: Millis,
) -> StartResult:
    """Claim the prepared fires that have not changed; the caller claims the others like any fire.

    ``used_slots``: how many slots this claim uses, by address; is updated.
    """
    result = StartResult([], [])
    for prepared_fire in _find_current(session, ready, now_ms):
        run, address = prepared_fire.claim, prepared_fire.claim.address or ""
        if used_slots[address] >= claimer.capacity(address):
            result.parked_fires.append(prepared_fire)
            continue
        used_slots[address] += 1
        trace = trace_claim(prepared_fire.routed_fire, node=claimer.node, zone=claimer.zone, now_ms=now_ms)
        result.claims.append(run._replace(trace=trace))
    prepared_fires.claim(
        session,
        [run.fire_id for run in result.claims],
        owner=claimer.node,
        lease_until=now_ms + claimer.lease_ms,
        now_ms=now_ms,
    )
    return result


def _find_current(session: Session, ready: Sequence[PreparedFire], now_ms: Millis) -> list[PreparedFire]:
    """Return the prepared fires that are due, or almost, and may be sent as they were prepared, locked."""
    candidates_by_group = find_group_candidates(
        session,
        [(prepared_fire.routed_fire.fire, prepared_fire.routed_fire.job) for prepared_fire in ready],
        now_ms=now_ms,
    )
    current_fires = [
        prepared_fire
        for prepared_fire in ready
        if prepared_fire.claim.due_ms <= now_ms + CLAIM_AHEAD_MS
        and candidates_by_group[prepared_fire.routed_fire.job.job_group]
        == prepared_fire.routed_fire.candidates
    ]
    edited_ms_by_fire = prepared_fires.lock_with_edits(
        session, [prepared_fire.claim.fire_id for prepared_fire in current_fires]
    )
    return [
        prepared_fire
        for prepared_fire in current_fires
        if edited_ms_by_fire.get(prepared_fire.claim.fire_id) == prepared_fire.edited_ms
    ]
