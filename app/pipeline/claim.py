"""Claim: routes due fires, logs them and marks them SENDING in one transaction.

docs/reference/pipeline.md, section 3.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import claims_paused
from app.domain.enums import FireState, RouteStrategy, TriggerCode
from app.domain.planning import DueFire
from app.domain.request_ids import request_of
from app.domain.routing import RouteState
from app.domain.sharding import WHOLE
from app.domain.trigger_keys import trigger_of
from app.domain.trigger_report import join_lines
from app.executors.calls import Peer
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.checkpoints import Repeated, copy_checkpoints, find_repeated
from app.pipeline.claim_trace import trace_claim, trace_unroutable
from app.pipeline.complete import Result, Source, complete
from app.pipeline.group_candidates import find_group_candidates
from app.pipeline.route import RoutedFire, expand_broadcast, route_fire
from app.store import bulk, fires, jobs, last_seen, logs, registry
from app.store.fires import PendingFire
from app.store.jobs import JobToRun
from app.store.logs import UnfinishedRun
from executor_client.protocol import RunRequest

#: FAILOVER and BUSYOVER probe the next candidate when one has not answered for this long
PROBE_MS: Millis = 300
#: lease added per candidate: PROBE_MS, plus time to connect and for a busy host
PROBE_LEASE_MS: Millis = 2 * PROBE_MS
#: any node may claim a fire of another one this long after its due time
ORPHAN_MS: Millis = 500
#: address lists with their peers that are kept
PEERS_KEPT = 256
#: as plain texts: reading the value of an enum takes longer than the rest of a row
_SENDING, _ROUTING = FireState.SENDING.value, FireState.ROUTING.value


@dataclass(frozen=True, slots=True)
class Claimer:
    """The claiming node and its settings."""

    node: str
    zone: str
    #: tokens of groups without their own: the one to send, and perhaps the one before
    tokens: tuple[str, ...]
    lease_ms: Millis
    #: lease added for probing, besides PROBE_LEASE_MS per candidate: the wait for the last answers
    probing_ms: Millis
    routes: RouteState
    #: free slots of an address
    capacity: Callable[[str], int]


class Claimed(NamedTuple):
    """A run this node may send until its lease ends.

    ``address`` None: probe the candidates first, in order.
    """

    fire_id: int
    log_id: int
    job_id: int
    epoch: int
    attempt: int
    due_ms: Millis
    route: RouteStrategy
    address: str | None
    peers: Mapping[str, Peer]
    request: RunRequest
    trace: tuple[str, ...]
    #: the executor may have accepted an earlier send of this run and would start it even after a restart
    remembered: bool = False
    #: address of the last send; None: never sent, or no longer known
    sent_to: str | None = None
    #: address before this claim, restored if nothing is sent
    given: str | None = None
    job_group: int = 0
    #: id of the request that triggered it; empty: none did
    request_id: str = ""
    #: addresses of executors that take the checkpoint of the request
    takers: frozenset[str] = frozenset()

    def request_for(self, address: str) -> RunRequest:
        """Return the run as it is sent there."""
        return self.request if address in self.takers else self.request.without_checkpoint()

    def was_sent_to(self, address: str) -> bool:
        """Whether an earlier send may have reached an executor; after more than one send, any executor."""
        return self.attempt > 2 or (self.attempt == 2 and self.sent_to in (None, address))

    def __repr__(self) -> str:
        """Identify the run without parameters, sources and tokens."""
        return (
            f"Claimed(fire_id={self.fire_id}, log_id={self.log_id}, job_id={self.job_id},"
            f" epoch={self.epoch}, attempt={self.attempt})"
        )


@dataclass(slots=True)
class ClaimBatch:
    """Result of one claim."""

    claimed: list[Claimed] = field(default_factory=list)
    #: fires left PENDING, by the address without capacity
    parked: dict[str, list[DueFire]] = field(default_factory=dict)
    #: shards of broadcasts, written as fires of their own, due at once
    expanded: list[DueFire] = field(default_factory=list)


def claim(session: Session, due: Sequence[DueFire], claimer: Claimer, *, now_ms: Millis) -> ClaimBatch:
    """Claim the fires that are still PENDING and whose address has capacity.

    Ends runs without an address at once. Works in the caller's transaction; the runs may be sent after its
    commit.
    """
    batch = ClaimBatch()
    if claims_paused(session, now_ms=now_ms):
        return batch  # the poll finds the fires again
    to_run, unfinished = _lock_due(session, due, now_ms)
    of_groups = find_group_candidates(
        session, {job.job_group for _, job in to_run}, [fire for fire, _ in to_run]
    )
    taken: Counter[str] = Counter()
    routed: list[RoutedFire] = []
    for fire, job in to_run:
        candidates = of_groups[job.job_group]
        found = route_fire(session, fire, job, candidates, claimer.routes)
        if found is None:
            batch.expanded += expand_broadcast(session, fire, candidates, node=claimer.node)
        elif found.address is not None and taken[found.address] >= claimer.capacity(found.address):
            batch.parked.setdefault(found.address, []).append(DueFire(fire.id, fire.job_id, fire.due_time))
        else:
            if found.address is not None:
                taken[found.address] += 1
            routed.append(found)
    runs = _write_logs(session, routed, unfinished, now_ms)
    bulk.update_many(
        session,
        Fire,
        [_mark(routed_fire, runs[routed_fire.fire.id], claimer, now_ms) for routed_fire in routed],
    )
    batch.claimed = [
        _claimed(routed_fire, runs[routed_fire.fire.id], claimer, now_ms)
        for routed_fire in routed
        if routed_fire.addresses
    ]
    _refuse_unroutable(
        session, [routed_fire for routed_fire in routed if not routed_fire.addresses], runs, claimer, now_ms
    )
    return batch


def _lock_due(
    session: Session, due: Sequence[DueFire], now_ms: Millis
) -> tuple[list[tuple[PendingFire, JobToRun]], dict[int, UnfinishedRun]]:
    """Return the fires to run, locked, with their jobs; and the log rows of earlier claims, by id.

    Deletes fires without a job and those of runs that have ended.
    """
    # if the clock has been set back, a fire may not be due any more: it is found again when it is
    pending = [
        fire for fire in fires.lock_pending(session, [fire.id for fire in due]) if fire.due_time <= now_ms
    ]
    of_jobs = jobs.find_to_run(session, {fire.job_id for fire in pending})
    unfinished = logs.find_unfinished(session, [fire.log_id for fire in pending if fire.log_id])
    to_run = [
        fire
        for fire in pending
        if fire.job_id in of_jobs and (fire.log_id is None or fire.log_id in unfinished)
    ]
    fires.delete_fires(session, {fire.id for fire in pending} - {fire.id for fire in to_run})
    return [(fire, of_jobs[fire.job_id]) for fire in to_run], unfinished


class _Run(NamedTuple):
    """The log row of a claimed fire."""

    log_id: int
    unfinished: UnfinishedRun
    #: see Claimed
    remembered: bool
    repeated: Repeated | None = None


def _write_logs(
    session: Session, routed: Sequence[RoutedFire], unfinished: Mapping[int, UnfinishedRun], now_ms: Millis
) -> dict[int, _Run]:
    """Insert the log rows of new runs and update the addresses of repeated ones.

    Return the runs by fire id.
    """
    new = [routed_fire for routed_fire in routed if routed_fire.fire.log_id is None]
    log_ids = logs.insert_logs(session, [_log_row(routed_fire, now_ms) for routed_fire in new])
    unsent = UnfinishedRun(now_ms, None)
    runs = {
        routed_fire.fire.id: _Run(log_id, unsent, remembered=False)
        for routed_fire, log_id in zip(new, log_ids, strict=True)
    }
    repeated = find_repeated(session, routed)
    copy_checkpoints(session, {fire_id: run.log_id for fire_id, run in runs.items()}, repeated)
    resent_to = {
        routed_fire.address for routed_fire in routed if routed_fire.address and routed_fire.fire.attempt
    }
    boots = registry.find_boots(session, resent_to) if resent_to else {}
    moved: list[bulk.Row] = []
    for routed_fire in routed:
        log_id, address = routed_fire.fire.log_id, routed_fire.address
        if log_id is None:
            continue
        announced = boots.get((address or "", routed_fire.candidates.app_name), ("", ""))[1]
        durable = "durable-dedup" in announced or bool(routed_fire.fire.boot_id)
        runs[routed_fire.fire.id] = _Run(
            log_id, unfinished[log_id], remembered=routed_fire.fire.attempt > 0 and durable
        )
        if address not in (None, routed_fire.fire.address):
            moved.append({"id": log_id, "executor_address": address})
    bulk.update_many(session, JobLog, moved)
    return runs | {fire_id: runs[fire_id]._replace(repeated=each) for fire_id, each in repeated.items()}


def _refuse_unroutable(
    session: Session, routed: Sequence[RoutedFire], runs: Mapping[int, _Run], claimer: Claimer, now_ms: Millis
) -> None:
    """End the runs that have no address."""
    if not routed:
        return
    last = last_seen.find_last(session, {routed_fire.candidates.app_name for routed_fire in routed})
    results = []
    for routed_fire in routed:
        trace = join_lines(
            trace_claim(routed_fire, node=claimer.node, zone=claimer.zone, now_ms=now_ms),
            trace_unroutable(routed_fire.candidates, last, claimer.zone),
        )
        log_id = runs[routed_fire.fire.id].log_id
        results.append(Result(log_id, Source.REFUSED, trigger_code=TriggerCode.REFUSED, trace=trace))
    complete(session, results, now_ms=now_ms)


def _log_row(routed_fire: RoutedFire, now_ms: Millis) -> bulk.Row:
    fire, job = routed_fire.fire, routed_fire.job
    scheduled = fire.trigger_type in fires.SCHEDULED
    trigger = None if scheduled else trigger_of(job.id, fire.fire_key)
    return {
        "job_group": job.job_group,
        "job_id": job.id,
        "executor_address": routed_fire.address,
        "executor_handler": job.executor_handler,
        "executor_param": routed_fire.param,
        "executor_sharding_param": str(routed_fire.shard) if routed_fire.shard else None,
        "executor_fail_retry_count": routed_fire.retries,
        "trigger_time": now_ms,
        "trigger_code": 0,
        "handle_code": 0,
        "alarm_status": 0,
        "fire_time": fire.due_time if scheduled else None,
        "trigger_type": fire.trigger_type,
        "source_log_id": None if scheduled else fires.source_of(fire.fire_key),
        "trigger_key": trigger.number if trigger is not None else None,
    }


def _mark(routed_fire: RoutedFire, run: _Run, claimer: Claimer, now_ms: Millis) -> bulk.Row:
    fire, state, lease_ms = routed_fire.fire, _SENDING, claimer.lease_ms
    if routed_fire.probes:
        state, lease_ms = _ROUTING, lease_ms + probing_ms(claimer, len(routed_fire.addresses))
    return {
        "id": fire.id,
        "state": state,
        "log_id": run.log_id,
        "address": routed_fire.address,
        "attempt": fire.attempt + 1,
        "owner": claimer.node,
        "epoch": fire.epoch + 1,
        "lease_until": now_ms + lease_ms,
        "sent_ms": now_ms,
    }


def probing_ms(claimer: Claimer, candidates: int) -> Millis:
    """Return how long probing that many candidates may take."""
    return candidates * PROBE_LEASE_MS + claimer.probing_ms


def _claimed(routed_fire: RoutedFire, run: _Run, claimer: Claimer, now_ms: Millis) -> Claimed:
    fire, job, candidates = routed_fire.fire, routed_fire.job, routed_fire.candidates
    addresses = routed_fire.addresses if routed_fire.address is None else (routed_fire.address,)
    return Claimed(
        fire_id=fire.id,
        log_id=run.log_id,
        job_id=job.id,
        epoch=fire.epoch + 1,
        attempt=fire.attempt + 1,
        due_ms=fire.due_time,
        route=routed_fire.route,
        address=routed_fire.address,
        peers=_peers(addresses, candidates.app_name, candidates.tokens or claimer.tokens),
        request=_request(routed_fire, run),
        trace=trace_claim(routed_fire, node=claimer.node, zone=claimer.zone, now_ms=now_ms),
        remembered=run.remembered,
        sent_to=run.unfinished.address,
        given=fire.address,
        job_group=job.job_group,
        request_id=request_of(fire.fire_key),
        takers=run.repeated.takers if run.repeated is not None else frozenset(),
    )


@lru_cache(PEERS_KEPT)
def _peers(addresses: tuple[str, ...], app_name: str, tokens: tuple[str, ...]) -> Mapping[str, Peer]:
    return {address: Peer(address, app_name, *tokens) for address in addresses}


def _request(routed_fire: RoutedFire, run: _Run) -> RunRequest:
    job, shard = routed_fire.job, routed_fire.shard or WHOLE
    return RunRequest(
        job_id=job.id,
        executor_handler=job.executor_handler or "",
        executor_params=routed_fire.param,
        executor_block_strategy=job.executor_block_strategy or "SERIAL_EXECUTION",
        executor_timeout=max(job.executor_timeout, 0),
        log_id=run.log_id,
        # that of the log row, also on a resend: it names the executor's log file
        log_date_time=run.unfinished.trigger_ms // 1000 * 1000,
        glue_type=job.glue_type,
        glue_source=job.glue_source or "",
        glue_updatetime=max(job.glue_updatetime or 0, 0),
        broadcast_index=shard.index,
        broadcast_total=shard.total,
        checkpoint=run.repeated.checkpoint if run.repeated is not None else "",
        repeats=run.repeated.log_id if run.repeated is not None else 0,
    )


def find_unseen(node: str, *, after_id: int, now_ms: Millis, limit: int) -> list[DueFire]:
    """Return due PENDING fires that no ring holds; opens its own reading transaction."""
    return fires.find_unseen(owner=node, after_id=after_id, now_ms=now_ms, orphan_ms=ORPHAN_MS, limit=limit)
