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
from app.pipeline.claim_trace import trace_claim
from app.pipeline.claimed_run import CLAIM_AHEAD_MS, ClaimedRun, Claimer, RunRow, claimed_run, log_row
from app.pipeline.group_candidates import find_group_candidates
from app.pipeline.route import RoutedFire, begin_routing, route_fire
from app.store.fires import logs
from app.store.fires import prepared as prepared_fires
from app.store.fires import queue as fires
from app.store.fires.logs import UnfinishedRun
from app.store.fires.queue import PendingFire
from app.store.jobs import scheduling as jobs

#: a job edited in the last seconds is not prepared: a second edit would not change its time, which is in
#: whole seconds and that of a request that may have waited for a lock. Nor is one edited at an unknown time
EDITED_MS: Millis = 10_000
#: a request with more characters of parameter and source is not made ahead: it is kept until its run is sent
MADE_MAX = 4_096


class PreparedFire(NamedTuple):
    """A routed and logged fire that is not due yet; ``claimed`` lacks the trace of its claim."""

    routed: RoutedFire
    claimed: ClaimedRun
    #: when the job was edited last; never 0, which stands for unknown
    edited_ms: Millis


#: no fires
NONE_PREPARED: Mapping[int, PreparedFire] = MappingProxyType({})


def prepare(
    session: Session, ahead: Sequence[DueFire], claimer: Claimer, *, now_ms: Millis
) -> dict[int, PreparedFire]:
    """Prepare those of the fires that were never claimed and whose address needs no probe, by fire id.

    Works in the caller's transaction.
    """
    if claims_paused(session, now_ms=now_ms):
        return {}
    new = [fire for fire in fires.lock_pending(session, [fire.id for fire in ahead]) if _is_new(fire)]
    edited = jobs.find_edited(session, {fire.job_id for fire in new})
    of_jobs = jobs.find_to_run(
        session, [job_id for job_id, edited_ms in edited.items() if 0 < edited_ms < now_ms - EDITED_MS]
    )
    new = [fire for fire in new if fire.job_id in of_jobs]
    of_groups = find_group_candidates(session, [(fire, of_jobs[fire.job_id]) for fire in new], now_ms=now_ms)
    routes = begin_routing(session, claimer.routes, of_jobs)
    routed = [
        found
        for fire in new
        if (job := of_jobs[fire.job_id])
        and (found := route_fire(session, fire, job, of_groups[job.job_group], routes)) is not None
        and storable(found.address) is not None
        and found.shard is None
    ]
    log_ids = logs.insert_logs(session, [log_row(each, each.fire.due_time) for each in routed])
    rows = [
        {"id": each.fire.id, "log_id": log_id, "address": each.address}
        for each, log_id in zip(routed, log_ids, strict=True)
    ]
    bulk.update_many(session, Fire, rows)
    return {
        each.fire.id: PreparedFire(each, _claimed(each, log_id, claimer), edited[each.job.id])
        for each, log_id in zip(routed, log_ids, strict=True)
    }


def _is_new(fire: PendingFire) -> bool:
    return fire.log_id is None and not fire.epoch and fire.trigger_type in fires.SCHEDULED


def _claimed(routed: RoutedFire, log_id: int, claimer: Claimer) -> ClaimedRun:
    run = RunRow(log_id, UnfinishedRun(as_stored(routed.fire.due_time), None), remembered=False)
    claimed = claimed_run(routed, run, claimer)
    is_short = len(claimed.request.executor_params) + len(claimed.request.glue_source) <= MADE_MAX
    made = claimed.content_for(claimed.address or "") if is_short else None
    return claimed._replace(made=made, has_new_id=False)


class StartResult(NamedTuple):
    """Prepared fires that were claimed, and those whose address has no capacity."""

    claimed: list[ClaimedRun]
    parked: list[PreparedFire]


def start(
    session: Session, ready: Sequence[PreparedFire], claimer: Claimer, taken: Counter[str], *, now_ms: Millis
) -> StartResult:
    """Claim those of the prepared fires that nothing has changed; the others are claimed like any.

    ``taken`` counts the slots of the addresses.
    """
    started = StartResult([], [])
    for each in _unchanged(session, ready, now_ms):
        run, address = each.claimed, each.claimed.address or ""
        if taken[address] >= claimer.capacity(address):
            started.parked.append(each)
            continue
        taken[address] += 1
        trace = trace_claim(each.routed, node=claimer.node, zone=claimer.zone, now_ms=now_ms)
        started.claimed.append(run._replace(trace=trace))
    prepared_fires.claim(
        session,
        [run.fire_id for run in started.claimed],
        owner=claimer.node,
        lease_until=now_ms + claimer.lease_ms,
        now_ms=now_ms,
    )
    return started


def _unchanged(session: Session, ready: Sequence[PreparedFire], now_ms: Millis) -> list[PreparedFire]:
    """Return the prepared fires that are due, or almost, and may be sent as they were prepared, locked."""
    of_groups = find_group_candidates(
        session, [(each.routed.fire, each.routed.job) for each in ready], now_ms=now_ms
    )
    unchanged = [
        each
        for each in ready
        if each.claimed.due_ms <= now_ms + CLAIM_AHEAD_MS
        and of_groups[each.routed.job.job_group] == each.routed.candidates
    ]
    edited = prepared_fires.lock_with_edits(session, [each.claimed.fire_id for each in unchanged])
    return [each for each in unchanged if edited.get(each.claimed.fire_id) == each.edited_ms]
