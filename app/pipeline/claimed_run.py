"""Claimed runs: the rows that a claim writes for a routed fire, and the value it hands to the sender."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import FireState, ParamForm, RouteStrategy
from app.domain.executors.addresses import without_slash
from app.domain.parameters.marked_text import fill_secrets
from app.domain.parameters.masking import Masker
from app.domain.runs.request_ids import request_of
from app.domain.runs.routing import RouteState
from app.domain.runs.sharding import WHOLE
from app.domain.runs.trigger_keys import trigger_of
from app.executors.addresses import storable
from app.executors.calls import NO_TOKEN, Peer
from app.pipeline.checkpoints import RepeatedRun
from app.pipeline.route import FilledParameter, RoutedFire, retries_left
from app.pipeline.sent_log_ids import SentLogIds
from app.store.fires import queue as fires
from app.store.fires.logs import UnfinishedRun
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun
from app.store.variables.values import open_sealed
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import RunRequest

#: FAILOVER and BUSYOVER probe the next candidate when one has not answered for this long
PROBE_MS: Millis = 300
#: lease added per candidate: PROBE_MS, plus time to connect and for a busy host
PROBE_LEASE_MS: Millis = 2 * PROBE_MS
#: size of the cache of address lists and their peers
PEERS_KEPT = 256
#: columns of the log row of a run whose parameter is sent as it is
SENT_AS_IS: Final[bulk.Row] = {"param_form": ParamForm.TEXT.value, "filled_param": None}
#: longest lead of the claim of a prepared fire, which is sent when it is due
CLAIM_AHEAD_MS: Millis = 100
#: Plain texts, because reading the value of an enum takes longer than the rest of a row.
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
    sent_log_ids: SentLogIds = field(default_factory=SentLogIds)


class ClaimedRun(NamedTuple):
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
    is_remembered: bool = False
    #: address of the last send; None: never sent, or no longer known
    sent_to: str | None = None
    #: address before this claim, restored if nothing is sent
    former_address: str | None = None
    job_group: int = 0
    #: id of the request that triggered it; empty: none did
    request_id: str = ""
    #: addresses of executors that accept the checkpoint of the request
    checkpoint_addresses: frozenset[str] = frozenset()
    #: addresses, without a final slash, of executors that take its logical time
    logical_addresses: frozenset[str] = frozenset()
    #: body of the request, if it was prepared: of a new run, hence without a checkpoint
    prepared_body: bytes | None = None
    #: this claim inserted the log row
    has_new_id: bool = False
    #: parameter with its secrets, if it has any: they are filled in when it is sent
    parameter: FilledParameter | None = None

    def content_for(self, address: str) -> bytes:
        """Return the body of the request as it is sent there."""
        return self.prepared_body or dump_json(self.request_for(address).to_wire())

    def request_for(self, address: str) -> RunRequest:
        """Return the run as it is sent there."""
        request = self.request
        if address not in self.checkpoint_addresses:
            request = request.without_checkpoint()
        if self.parameter is not None and self.parameter.marked_text is not None:
            values = {name: open_sealed(text) for name, text in self.parameter.secrets.items()}
            request = request._replace(executor_params=fill_secrets(self.parameter.marked_text, values))
        takes_time = without_slash(address) in self.logical_addresses
        return request if takes_time else request.without_logical_time()

    def mask_text(self, text: str) -> str:
        """Return a text of the executor without the values of the secrets that are sent."""
        if not text or self.parameter is None:
            return text
        return Masker(
            (name, [open_sealed(ciphertext)]) for name, ciphertext in self.parameter.secrets.items()
        ).mask(text)

    def was_sent_to(self, address: str) -> bool:
        """Whether an earlier send may have reached an executor; after more than one send, any executor."""
        return self.attempt > 2 or (self.attempt == 2 and self.sent_to in (None, address))

    def __repr__(self) -> str:
        """Identify the run without parameters, sources and tokens."""
        return (
            f"ClaimedRun(fire_id={self.fire_id}, log_id={self.log_id}, job_id={self.job_id},"
            f" epoch={self.epoch}, attempt={self.attempt})"
        )


class RunRow(NamedTuple):
    """The log row of a claimed fire."""

    log_id: int
    run: UnfinishedRun
    #: as in ClaimedRun
    is_remembered: bool
    source: RepeatedRun | None = None


def log_row(routed_fire: RoutedFire, now_ms: Millis) -> bulk.Row:
    """Return the log row of a run that is triggered now."""
    return bare_row(routed_fire.fire, routed_fire.job, now_ms) | {
        "executor_address": storable(routed_fire.address),
        "executor_handler": routed_fire.job.executor_handler,
        "executor_param": routed_fire.param,
        "executor_sharding_param": str(routed_fire.shard) if routed_fire.shard else None,
        **filled_columns(routed_fire),
    }


def filled_columns(routed_fire: RoutedFire) -> bulk.Row:
    """Return the columns of the log row of a run whose parameter is filled in; none of any other."""
    if routed_fire.parameter is None:
        return {}
    return {"param_form": ParamForm.TEMPLATE.value, "filled_param": routed_fire.parameter.marked_text}


def bare_row(fire: PendingFire, job: JobToRun, now_ms: Millis) -> bulk.Row:
    """Return the log row of a run without its address and the texts of its job."""
    is_scheduled = fire.trigger_type in fires.SCHEDULED
    trigger = None if is_scheduled else trigger_of(job.id, fire.fire_key)
    return {
        "job_group": job.job_group,
        "job_id": job.id,
        "executor_sharding_param": fire.sharding_param,
        "executor_fail_retry_count": retries_left(fire, job),
        "trigger_time": now_ms,
        "trigger_code": 0,
        "handle_code": 0,
        "alarm_status": 0,
        "fire_time": fire.due_time if is_scheduled else None,
        "logical_ms": fire.logical_time,
        "trigger_type": fire.trigger_type,
        "source_log_id": None if is_scheduled else fires.source_of(fire.fire_key),
        "trigger_key": trigger.number if trigger is not None else None,
    }


def mark(routed_fire: RoutedFire, run: RunRow, claimer: Claimer, now_ms: Millis) -> bulk.Row:
    """Return the changes of a fire that is claimed."""
    fire, state, lease_ms = routed_fire.fire, _SENDING, claimer.lease_ms
    address = storable(routed_fire.address)
    if routed_fire.probes:
        state, lease_ms = _ROUTING, lease_ms + probing_ms(claimer, len(routed_fire.addresses))
    elif address is None:  # No byte was sent: any node may claim it after the lease.
        state = _ROUTING
    return {
        "id": fire.id,
        "state": state,
        "log_id": run.log_id,
        "address": address,
        "attempt": fire.attempt + 1,
        "owner": claimer.node,
        "epoch": fire.epoch + 1,
        "lease_until": now_ms + lease_ms,
        "sent_ms": now_ms,
    }


def probing_ms(claimer: Claimer, candidates: int) -> Millis:
    """Return how long probing that many candidates may take."""
    return candidates * PROBE_LEASE_MS + claimer.probing_ms


def claimed_run(
    routed_fire: RoutedFire, run: RunRow, claimer: Claimer, trace: tuple[str, ...] = ()
) -> ClaimedRun:
    """Return what the sender needs of a claimed fire."""
    fire, job, candidates = routed_fire.fire, routed_fire.job, routed_fire.candidates
    addresses = routed_fire.addresses if routed_fire.address is None else (routed_fire.address,)
    return ClaimedRun(
        fire_id=fire.id,
        log_id=run.log_id,
        job_id=job.id,
        epoch=fire.epoch + 1,
        attempt=fire.attempt + 1,
        due_ms=fire.due_time,
        route=routed_fire.route,
        address=routed_fire.address,
        peers=_peers(addresses, candidates.app_name, _tokens(routed_fire, claimer)),
        request=_request(routed_fire, run, claimer.zone),
        trace=trace,
        is_remembered=run.is_remembered,
        sent_to=run.run.address,
        former_address=fire.address,
        job_group=job.job_group,
        request_id=request_of(fire.fire_key),
        checkpoint_addresses=(run.source.checkpoint_addresses if run.source is not None else frozenset()),
        logical_addresses=candidates.logical,
        has_new_id=fire.log_id is None,
        parameter=_with_secrets(routed_fire),
    )


def _with_secrets(routed_fire: RoutedFire) -> FilledParameter | None:
    """Return the filled parameter if it has secrets; an address that must not learn them gets their names."""
    parameter = routed_fire.parameter
    if parameter is None or not parameter.secrets:
        return None
    return None if routed_fire.address in routed_fire.candidates.foreign_to_token else parameter


def _tokens(routed_fire: RoutedFire, claimer: Claimer) -> tuple[str, ...]:
    """Return the tokens to send; an address that must not learn them gets none."""
    candidates = routed_fire.candidates
    if routed_fire.address in candidates.foreign_to_token:
        return NO_TOKEN
    return candidates.tokens or claimer.tokens


@lru_cache(PEERS_KEPT)
def _peers(addresses: tuple[str, ...], app_name: str, tokens: tuple[str, ...]) -> Mapping[str, Peer]:
    return {address: Peer(address, app_name, *tokens) for address in addresses}


def _request(routed_fire: RoutedFire, run: RunRow, zone: str) -> RunRequest:
    job, shard = routed_fire.job, routed_fire.shard or WHOLE
    is_told = bool(routed_fire.candidates.logical)
    return RunRequest(
        job_id=job.id,
        executor_handler=job.executor_handler or "",
        executor_params=routed_fire.sent_param,
        executor_block_strategy=job.executor_block_strategy or "SERIAL_EXECUTION",
        executor_timeout=max(job.executor_timeout, 0),
        log_id=run.log_id,
        # The time is that of the log row, as in resends and /log, because it names the executor's log file.
        log_date_time=run.run.trigger_ms,
        glue_type=job.glue_type,
        glue_source=job.glue_source or "",
        glue_updatetime=max(job.glue_updatetime or 0, 0),
        broadcast_index=shard.index,
        broadcast_total=shard.total,
        checkpoint=run.source.checkpoint if run.source is not None else "",
        repeats=run.source.log_id if run.source is not None else 0,
        logical_time=routed_fire.fire.logical_time if is_told else None,
        time_zone=(job.time_zone or zone) if is_told else "",
    )
