"""Claiming due fires: routed, logged and marked SENDING in one transaction.

Source: docs/reference/pipeline.md, section 3.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import read_scope
from app.domain.draining import tell_all_drained
from app.domain.enums import AddressType, FireState, RouteStrategy, TriggerCode, TriggerType
from app.domain.planning import DueFire
from app.domain.routing import PROBING, ROUTERS, SEED_ROWS, RouteState, route_of
from app.domain.sharding import WHOLE, Shard, parse_shard
from app.domain.trigger_report import banner, format_instant, join_lines
from app.executors.gateway import Peer
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.complete import Result, Source, complete
from app.pipeline.group_candidates import (
    GroupCandidates,
    drained_lines,
    entered_addresses,
    find_group_candidates,
    fixed_address,
)
from app.store import bulk, fires, jobs, last_seen, logs, registry
from app.store.fires import PendingFire
from app.store.jobs import JobToRun
from app.store.logs import Begun
from executor_client.protocol import RunRequest

#: while a probe of FAILOVER and BUSYOVER has not been answered for so long, the next candidate is asked too
PROBE_MS: Millis = 300
#: what a lease counts for each candidate: connecting, and a busy machine, come on top
PROBE_LEASE_MS: Millis = 2 * PROBE_MS
#: a fire of another node is an orphan so long after its due time: the owner is a hint, not a right
ORPHAN_MS: Millis = 500
#: largest list of addresses a trace shows
TRACE_ADDRESSES = 50


@dataclass(frozen=True, slots=True)
class Claimer:
    """Who claims, under which conditions."""

    node: str
    zone: str
    #: the token of groups without one of their own
    token: str
    lease_ms: Millis
    #: what the lease of a run that has to be probed for counts on top, beside PROBE_LEASE_MS a candidate: the wait for the last answers
    probing_ms: Millis
    routes: RouteState
    #: free slots of an address
    capacity: Callable[[str], int]


class Claimed(NamedTuple):
    """A run that is ours to send until its lease ends; ``address`` None: the executors are to be asked first, in order."""

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
    #: the executor may have taken an earlier send of this run, and would start it also after a restart
    remembered: bool = False
    #: where it was sent last; None: it never was, or that is not known any more
    sent_to: str | None = None
    #: the address it had before this claim, for it to have again where nothing is sent
    given: str | None = None

    def was_sent_to(self, address: str) -> bool:
        """Whether an executor may have got an earlier send of this run; after more than one, any of them may."""
        return self.attempt > 2 or (self.attempt == 2 and self.sent_to in (None, address))

    def __repr__(self) -> str:
        """Name the run; parameters, sources and tokens stay out of logs."""
        return f"Claimed(fire_id={self.fire_id}, log_id={self.log_id}, job_id={self.job_id}, epoch={self.epoch}, attempt={self.attempt})"


@dataclass(slots=True)
class ClaimBatch:
    """What one claim did."""

    claimed: list[Claimed] = field(default_factory=list)
    #: fires left PENDING, by the address that has no room
    parked: dict[str, list[DueFire]] = field(default_factory=dict)
    #: shards of broadcasts, written as fires of their own: due at once
    expanded: list[DueFire] = field(default_factory=list)


class _Routed(NamedTuple):
    """A fire with everything its log row needs."""

    fire: PendingFire
    job: JobToRun
    candidates: GroupCandidates
    route: RouteStrategy
    addresses: tuple[str, ...]
    #: None: nobody to send to, or to be found by probing
    address: str | None
    shard: Shard | None

    @property
    def probes(self) -> bool:
        return self.address is None and bool(self.addresses)

    @property
    def param(self) -> str:
        given = self.fire.executor_param
        return (self.job.executor_param or "") if given is None else given

    @property
    def retries(self) -> int:
        left = self.fire.fail_retry_count
        return max(self.job.executor_fail_retry_count, 0) if left < 0 else left


def claim(session: Session, due: Sequence[DueFire], claimer: Claimer, *, now_ms: Millis) -> ClaimBatch:
    """Claim those of the fires that are still PENDING and whose address has room; ends at once what can go nowhere.

    Runs in the caller's transaction; after its commit the claimed runs are safe to send.
    """
    batch = ClaimBatch()
    # what was due by a clock that has been set back since is found again when it is due
    pending = [
        fire for fire in fires.lock_pending(session, [fire.id for fire in due]) if fire.due_time <= now_ms
    ]
    of_jobs = jobs.find_to_run(session, {fire.job_id for fire in pending})
    begun = logs.find_unfinished(session, [fire.log_id for fire in pending if fire.log_id])
    to_run = [
        fire for fire in pending if fire.job_id in of_jobs and (fire.log_id is None or fire.log_id in begun)
    ]
    fires.delete_fires(session, {fire.id for fire in pending} - {fire.id for fire in to_run})
    of_groups = find_group_candidates(session, {job.job_group for job in of_jobs.values()}, to_run)
    taken: Counter[str] = Counter()
    routed: list[_Routed] = []
    for fire in to_run:
        job = of_jobs[fire.job_id]
        candidates = of_groups[job.job_group]
        found = _route(session, fire, job, candidates, claimer)
        if found is None:
            batch.expanded += _expand(session, fire, entered_addresses(fire) or candidates.open, claimer.node)
        elif found.address is not None and taken[found.address] >= claimer.capacity(found.address):
            batch.parked.setdefault(found.address, []).append(DueFire(fire.id, fire.job_id, fire.due_time))
        else:
            if found.address is not None:
                taken[found.address] += 1
            routed.append(found)
    _write(session, routed, batch, claimer, begun, now_ms)
    return batch


def _route(
    session: Session, fire: PendingFire, job: JobToRun, candidates: GroupCandidates, claimer: Claimer
) -> _Routed | None:
    """Choose the address; None: a broadcast that is still to be expanded into shards."""
    route, shard = route_of(job.executor_route_strategy), parse_shard(fire.sharding_param)
    addresses = entered_addresses(fire) or candidates.open
    if fixed := fixed_address(fire, candidates):
        return _Routed(fire, job, candidates, route, addresses or (fixed,), fixed, shard)
    if route is RouteStrategy.SHARDING_BROADCAST:
        if shard is None and addresses and fire.log_id is None:
            return None
        index = shard.index if shard else 0
        if index >= len(
            addresses
        ):  # the original's rule is the first address; those of drained ones are shared out
            index = index % len(addresses) if addresses and candidates.drained else 0
        return _Routed(
            fire, job, candidates, route, addresses, addresses[index] if addresses else None, shard
        )
    if route in PROBING or not addresses:
        return _Routed(fire, job, candidates, route, addresses, None, shard)
    if claimer.routes.needs_seed(route, job.id):
        claimer.routes.seed(job.id, logs.find_recent_addresses(session, job.id, limit=SEED_ROWS))
    return _Routed(
        fire, job, candidates, route, addresses, ROUTERS[route](job.id, addresses, claimer.routes), shard
    )


def _expand(session: Session, fire: PendingFire, addresses: tuple[str, ...], node: str) -> list[DueFire]:
    """Replace a broadcast by one fire a shard, each with its address, from one snapshot."""
    shards = [
        {
            "job_id": fire.job_id,
            "fire_key": f"{fire.fire_key}:{index}",
            "due_time": fire.due_time,
            "trigger_type": fire.trigger_type,
            "executor_param": fire.executor_param,
            "address_list": fire.address_list,
            "sharding_param": str(Shard(index, len(addresses))),
            "fail_retry_count": fire.fail_retry_count,
            "state": FireState.PENDING.value,
            "address": address,
            "owner": node,
        }
        for index, address in enumerate(addresses)
    ]
    ids = bulk.insert_with_ids(session, Fire, shards)
    fires.delete_fires(session, [fire.id])
    return [DueFire(shard_id, fire.job_id, fire.due_time) for shard_id in ids]


def _write(
    session: Session,
    routed: Sequence[_Routed],
    batch: ClaimBatch,
    claimer: Claimer,
    begun: Mapping[int, Begun],
    now_ms: Millis,
) -> None:
    """Insert the log rows, mark the fires, and end those that have nobody to go to."""
    fresh = [one for one in routed if one.fire.log_id is None]
    sent_before = {one.address for one in routed if one.address and one.fire.attempt}
    boots = registry.find_boots(session, sent_before) if sent_before else {}
    log_ids = dict(
        zip(
            [one.fire.id for one in fresh],
            logs.insert_logs(session, [_log_row(one, now_ms) for one in fresh]),
            strict=True,
        )
    )
    empty = {one.candidates.group.app_name for one in routed if not one.addresses}
    last = last_seen.find_last(session, empty) if empty else {}
    sending, unroutable = [], []
    for one in routed:
        log_id = one.fire.log_id or log_ids[one.fire.id]
        trace = _trace(one, claimer, now_ms)
        sending.append(_mark(one, log_id, claimer, now_ms))
        if one.addresses:
            durable = "durable-dedup" in boots.get(one.address or "", ("", ""))[1] or bool(one.fire.boot_id)
            remembered = one.fire.attempt > 0 and durable
            first = begun.get(log_id, Begun(now_ms, None))
            batch.claimed.append(_claimed(one, log_id, claimer, trace, first, remembered=remembered))
        else:
            told = join_lines(trace, _nobody(one.candidates, last, claimer.zone))
            unroutable.append(Result(log_id, Source.REFUSED, trigger_code=TriggerCode.REFUSED, trace=told))
    bulk.update_many(session, Fire, sending)
    moved = [one for one in routed if one.fire.log_id and one.address not in (None, one.fire.address)]
    bulk.update_many(
        session, JobLog, [{"id": one.fire.log_id, "executor_address": one.address} for one in moved]
    )
    if unroutable:
        complete(session, unroutable, now_ms=now_ms)


def _nobody(candidates: GroupCandidates, last: Mapping[str, Millis], zone: str) -> str:
    """Return the line that says why a run can go nowhere; ``last`` is when the executors of each application were last there."""
    group, drained = candidates.group, candidates.drained
    if not group.app_name:
        return "Result: not sent, the executor group of this job does not exist any more"
    if drained:
        return tell_all_drained(group.app_name, len(drained))
    nobody = f"Result: not sent, no executor of {group.app_name} is registered"
    last_seen_ms = last.get(group.app_name)
    return (
        nobody
        if last_seen_ms is None
        else f"{nobody}; the last one was seen {format_instant(last_seen_ms, zone)}"
    )


def _log_row(one: _Routed, now_ms: Millis) -> bulk.Row:
    scheduled = one.fire.trigger_type in fires.SCHEDULED
    return {
        "job_group": one.job.job_group,
        "job_id": one.job.id,
        "executor_address": one.address,
        "executor_handler": one.job.executor_handler,
        "executor_param": one.param,
        "executor_sharding_param": str(one.shard) if one.shard else None,
        "executor_fail_retry_count": one.retries,
        "trigger_time": now_ms,
        "trigger_code": TriggerCode.NONE.value,
        "handle_code": 0,
        "alarm_status": 0,
        "fire_time": one.fire.due_time if scheduled else None,
        "trigger_type": one.fire.trigger_type,
        "source_log_id": fires.source_of(one.fire.fire_key),
    }


def _mark(one: _Routed, log_id: int, claimer: Claimer, now_ms: Millis) -> bulk.Row:
    return {
        "id": one.fire.id,
        "state": (FireState.ROUTING if one.probes else FireState.SENDING).value,
        "log_id": log_id,
        "address": one.address,
        "attempt": one.fire.attempt + 1,
        "owner": claimer.node,
        "epoch": one.fire.epoch + 1,
        "lease_until": now_ms
        + claimer.lease_ms
        + (probing_ms(claimer, len(one.addresses)) if one.probes else 0),
        "sent_ms": now_ms,
    }


def probing_ms(claimer: Claimer, candidates: int) -> Millis:
    """Return how long asking so many candidates may take."""
    return candidates * PROBE_LEASE_MS + claimer.probing_ms


def _claimed(
    one: _Routed, log_id: int, claimer: Claimer, trace: tuple[str, ...], begun: Begun, *, remembered: bool
) -> Claimed:
    token, app_name = one.candidates.group.access_token or claimer.token, one.candidates.group.app_name
    addresses = one.addresses if one.address is None else (one.address,)
    shard = one.shard or WHOLE
    job = one.job
    return Claimed(
        fire_id=one.fire.id,
        log_id=log_id,
        job_id=job.id,
        epoch=one.fire.epoch + 1,
        attempt=one.fire.attempt + 1,
        due_ms=one.fire.due_time,
        route=one.route,
        address=one.address,
        peers={address: Peer(address, app_name, token) for address in addresses},
        request=RunRequest(
            job_id=job.id,
            executor_handler=job.executor_handler or "",
            executor_params=one.param,
            executor_block_strategy=job.executor_block_strategy or "SERIAL_EXECUTION",
            executor_timeout=max(job.executor_timeout, 0),
            log_id=log_id,
            log_date_time=begun.trigger_ms
            // 1000
            * 1000,  # the row's, also when it is sent again: it names the log file
            glue_type=job.glue_type,
            glue_source=job.glue_source or "",
            glue_updatetime=max(job.glue_updatetime or 0, 0),
            broadcast_index=shard.index,
            broadcast_total=shard.total,
        ),
        trace=trace,
        remembered=remembered,
        sent_to=begun.address,
        given=one.fire.address,
    )


def _trace(one: _Routed, claimer: Claimer, now_ms: Millis) -> tuple[str, ...]:
    """Return the first lines of the run's trace: why it is, who saw it, who may get it."""
    fire, job = one.fire, one.job
    if fire.log_id is not None and fire.attempt > 0:
        again = (
            banner(f"sent again, attempt {fire.attempt + 1}"),
            f"Claimed: {format_instant(now_ms, claimer.zone)}, node {claimer.node}",
        )
        return again + drained_lines(fire, one.candidates)
    given = one.addresses[:TRACE_ADDRESSES]
    more = f" and {len(one.addresses) - len(given)} more" if len(one.addresses) > len(given) else ""
    manual = fire.address_list or one.candidates.group.address_type == AddressType.MANUAL
    route = f"{one.route} ({one.shard})" if one.shard else str(one.route)
    seen = f", seen by node {fire.owner}" if fire.owner else ""
    return (
        f"Trigger: {TriggerType(fire.trigger_type)}, due {format_instant(fire.due_time, claimer.zone)}{seen}",
        f"Claimed: {format_instant(now_ms, claimer.zone)} ({now_ms - fire.due_time} ms after due), node {claimer.node}",
        f"Addresses: {'entered' if manual else 'registered'} [{', '.join(given)}{more}]",
        *drained_lines(fire, one.candidates),
        f"Route: {route}; block strategy: {job.executor_block_strategy}; timeout: {job.executor_timeout} s; retries left: {one.retries}",
        banner("trigger"),
    )


def find_unseen(node: str, *, after_id: int, now_ms: Millis, limit: int) -> list[DueFire]:
    """Return due PENDING fires that no ring holds; opens its own reading transaction."""
    with read_scope() as session:
        return fires.find_unseen(
            session, owner=node, after_id=after_id, now_ms=now_ms, orphan_ms=ORPHAN_MS, limit=limit
        )
