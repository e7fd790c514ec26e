"""Routing at the claim: the address of a due fire, and the shards of a broadcast."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.database.engine import call_at_commit
from app.database.rows import bulk
from app.domain.enums import FireState, GlueType, RouteStrategy
from app.domain.parameters.marked_text import unmark
from app.domain.runs.routing import PROBING, ROUTERS, SEED_ROWS, RouteState, route_of
from app.domain.runs.sharding import Shard, parse_shard
from app.domain.schedules.planning import DueFire
from app.executors.addresses import storable
from app.models.fire import Fire
from app.pipeline.group_candidates import GroupCandidates, addresses_for, fixed_address
from app.store.fires import logs
from app.store.fires import queue as fires
from app.store.fires.logs import UnfinishedRun
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun

#: no columns
NO_COLUMNS: bulk.Row = {}


class FilledParameter(NamedTuple):
    """Parameter with its values, all but those of secrets."""

    #: marked text (``app.domain.parameters``); None: it could not be filled in
    marked_text: str | None
    #: name -> sealed value of the secrets in it
    secrets: Mapping[str, str]


class RoutedFire(NamedTuple):
    """A routed fire, with all that its log row needs."""

    fire: PendingFire
    job: JobToRun
    candidates: GroupCandidates
    route: RouteStrategy
    addresses: tuple[str, ...]
    #: None: there is no address, or probes have to choose one
    address: str | None
    shard: Shard | None
    #: None: the parameter is sent as it is
    parameter: FilledParameter | None = None

    @property
    def probes(self) -> bool:
        """Whether the address is chosen by probing."""
        return self.address is None and bool(self.addresses)

    @property
    def param(self) -> str:
        """The parameter of the run: its own, else the job's."""
        run_param = self.fire.executor_param
        return (self.job.executor_param or "") if run_param is None else run_param

    @property
    def sent_param(self) -> str:
        """The parameter as it is sent, with placeholders where it has secrets."""
        if self.parameter is None or self.parameter.marked_text is None:
            return self.param
        return unmark(self.parameter.marked_text)

    @property
    def retries(self) -> int:
        """How many retries are left."""
        return retries_left(self.fire, self.job)


def retries_left(fire: PendingFire, job: JobToRun) -> int:
    """Return how many retries a fire has, its own or all of its job."""
    count = fire.fail_retry_count
    return max(job.executor_fail_retry_count, 0) if count < 0 else count


def is_as_sent(fire: PendingFire, job: JobToRun, run: UnfinishedRun) -> bool:
    """Whether a run executes what is in its log row, not what its job has now."""
    return fire.attempt > 0 and job.glue_type == GlueType.BEAN and bool(run.handler)


def begin_routing(session: Session, routes: RouteState, job_ids: Collection[int]) -> RouteState:
    """Return the state to route fires of these jobs with; ``routes`` gets it at the commit.

    A transaction that is repeated thus takes no turn twice.
    """
    state = RouteState(routes.random)
    state.take_over(routes, job_ids)
    call_at_commit(session, partial(routes.take_over, state, job_ids))
    return state


def route_fire(
    session: Session,
    fire: PendingFire,
    job: JobToRun,
    candidates: GroupCandidates,
    routes: RouteState,
    *,
    sent_to: str | None = None,
) -> RoutedFire | None:
    """Choose the address; None: a broadcast that is still to be expanded into shards.

    ``sent_to``: address of an earlier send. A run that does not have to stay there goes to another, if there
    is one.
    """
    route, shard = route_of(job.executor_route_strategy), parse_shard(fire.sharding_param)
    addresses = addresses_for(fire, candidates)
    address: str | None = None
    if kept_address := fixed_address(fire, candidates):
        addresses, address = addresses or (kept_address,), kept_address
    elif route is RouteStrategy.SHARDING_BROADCAST:
        if shard is None and addresses and fire.log_id is None:
            return None
        address = _address_of_shard(shard, addresses, spread=bool(candidates.drained_addresses))
    elif route not in PROBING and addresses:
        if routes.needs_seed(route, job.id):
            routes.seed(job.id, logs.find_recent_addresses(session, job.id, limit=SEED_ROWS))
        address = ROUTERS[route](job.id, addresses, routes)
    if not kept_address and sent_to in addresses:
        # The whole list was routed, so that LFU and LRU do not forget this address and choose it next.
        after = _after(sent_to, addresses)
        addresses = after if address is None else addresses
        address = after[0] if address == sent_to else address
    return RoutedFire(fire, job, candidates, route, addresses, address, shard)


def _after(address: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses in the order in which they follow this one, which is the last."""
    index = addresses.index(address) + 1
    return addresses[index:] + addresses[:index]


def _address_of_shard(shard: Shard | None, addresses: tuple[str, ...], *, spread: bool) -> str | None:
    """Return the address of a shard; one beyond the list gets the first, or is spread if any is drained."""
    if not addresses:
        return None
    index = shard.index if shard else 0
    if index < len(addresses):
        return addresses[index]
    return addresses[index % len(addresses) if spread else 0]


def expand_broadcast(
    session: Session,
    fire: PendingFire,
    candidates: GroupCandidates,
    *,
    node: str,
    columns: bulk.Row = NO_COLUMNS,
) -> list[DueFire]:
    """Replace a broadcast by one fire per shard, each with its address, from one snapshot of the list.

    ``columns``: further ones of the shards.
    """
    addresses = addresses_for(fire, candidates)
    in_round = {"chain": fire.chain, "round_id": fire.round_id}
    if all(value is None for value in in_round.values()):  # as of most fires
        in_round = {}
    shards = [
        {
            "job_id": fire.job_id,
            "fire_key": f"{fire.fire_key}:{index}",
            "due_time": fire.due_time,
            "trigger_type": fire.trigger_type,
            "executor_param": fire.executor_param,
            "param_form": fire.param_form,
            "address_list": fire.address_list,
            "sharding_param": str(Shard(index, len(addresses))),
            "fail_retry_count": fire.fail_retry_count,
            "state": FireState.PENDING.value,
            "address": storable(address),
            "owner": node,
            "repeats_log_id": fire.repeats_log_id,
            "logical_ms": fire.logical_time,
            "admitted_ms": fire.admitted_ms,
            "limit_key": fire.limit_key,
            **in_round,
            **columns,
        }
        for index, address in enumerate(addresses)
    ]
    ids = bulk.insert_with_ids(session, Fire, shards)
    fires.delete_fires(session, [fire.id])
    return [DueFire(shard_id, fire.job_id, fire.due_time) for shard_id in ids]
