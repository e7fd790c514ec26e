"""Claim: routes due fires, logs them and marks them SENDING in one transaction.

docs/reference/pipeline.md, section 3.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import claims_paused
from app.database.rows import bulk
from app.domain.enums import NotStarted, TriggerCode
from app.domain.runs.trigger_report import join_lines
from app.domain.schedules.planning import DueFire
from app.domain.text.texts import Text
from app.models.fire import Fire
from app.pipeline.calendars.pauses import pause_of
from app.pipeline.claim_trace import trace_claim, trace_unfilled, trace_unroutable
from app.pipeline.claimed_run import (
    ClaimedRun,
    Claimer,
    RunRow,
    claimed_run,
    mark,
)
from app.pipeline.complete import Result, Source, complete
from app.pipeline.fill import fill_parameters, write_run_ids
from app.pipeline.gate import OPEN_GATE, Gate, needs_slots
from app.pipeline.group_candidates import GroupCandidates, find_group_candidates
from app.pipeline.prepare import NONE_PREPARED, PreparedFire, start
from app.pipeline.rounds.gate import needs_round
from app.pipeline.rounds.run_marks import mark_runs
from app.pipeline.route import RoutedFire, begin_routing, expand_broadcast, is_as_sent, route_fire
from app.pipeline.run_rows import write_logs
from app.store.executors import last_seen
from app.store.fires import logs, prepared_fires, unseen_fires
from app.store.fires import queue as fires
from app.store.fires.logs import UnfinishedRun
from app.store.fires.queue import PendingFire
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import JobToRun

#: any node may claim a fire of another one this long after its due time
ORPHAN_MS: Millis = 500


@dataclass(slots=True)
class ClaimBatch:
    """Result of one claim."""

    claims: list[ClaimedRun] = field(default_factory=list)
    #: fires left PENDING, by the address without capacity
    parked_fires: dict[str, list[DueFire]] = field(default_factory=dict)
    #: fires to claim once more: shards of broadcasts, written as fires of their own, and those whose round
    #: has started
    new_fires: list[DueFire] = field(default_factory=list)
    #: fires left PENDING, because they need slots or a round, or a blackout is on: for ``claim_limited``
    limited_fires: list[DueFire] = field(default_factory=list)
    #: how many of these have begun to wait
    waiting: int = 0


class Claim(Protocol):
    """A claim in the caller's transaction."""

    def __call__(
        self, session: Session, due: Sequence[DueFire], claimer: Claimer, *, now_ms: Millis
    ) -> ClaimBatch:
        """Claim the fires."""


class LockedFires(NamedTuple):
    """Due fires that a claim has locked."""

    #: with their jobs, in their order
    to_run: list[tuple[PendingFire, JobToRun]]
    #: log rows of earlier claims, by id
    run_by_id: dict[int, UnfinishedRun]


def claim(
    session: Session,
    due: Sequence[DueFire],
    claimer: Claimer,
    *,
    now_ms: Millis,
    prepared_by_id: Mapping[int, PreparedFire] = NONE_PREPARED,
) -> ClaimBatch:
    """Claim the fires that are still PENDING and whose address has capacity.

    Those in ``prepared_by_id`` (fire id) whose job and group have not changed since are only marked.
    Ends runs without an address at once. Works in the caller's transaction; the runs may be sent after its
    commit.
    """
    batch = ClaimBatch()
    if claims_paused(session, now_ms=now_ms):
        return batch  # The poll finds the fires again.
    used_slots: Counter[str] = Counter()
    if ready := [prepared_by_id[fire.id] for fire in due if fire.id in prepared_by_id]:
        result = start(session, ready, claimer, used_slots, now_ms=now_ms)
        batch.claims = result.claims
        started_ids = {run.fire_id for run in result.claims} | {
            prepared_fire.claim.fire_id for prepared_fire in result.parked_fires
        }
        for prepared_fire in result.parked_fires:
            parked_fire = DueFire(
                prepared_fire.claim.fire_id,
                prepared_fire.claim.job_id,
                prepared_fire.claim.due_ms,
            )
            batch.parked_fires.setdefault(prepared_fire.claim.address or "", []).append(parked_fire)
        due = [fire for fire in due if fire.id not in started_ids]
    if due:
        _claim(session, due, claimer, used_slots, batch, now_ms)
    return batch


def _claim(
    session: Session,
    due: Sequence[DueFire],
    claimer: Claimer,
    used_slots: Counter[str],
    batch: ClaimBatch,
    now_ms: Millis,
) -> None:
    """Claim fires that are not prepared; ``used_slots``: slots that this claim uses already, by address."""
    pending = lock_due(session, due, now_ms)
    candidates_by_group = find_group_candidates(session, pending.to_run, now_ms=now_ms)
    limited_fires = [
        (fire, job)
        for fire, job in pending.to_run
        if needs_round(fire, job)
        or needs_slots(fire, job, candidates_by_group[job.job_group])
        or pause_of(fire, job, now_ms=now_ms) is not None
    ]
    if limited_fires:
        batch.limited_fires += [DueFire(fire.id, fire.job_id, fire.due_time) for fire, _ in limited_fires]
        limited_ids = {fire.id for fire, _ in limited_fires}
        pending = pending._replace(to_run=[pair for pair in pending.to_run if pair[0].id not in limited_ids])
    claim_locked(session, pending, candidates_by_group, claimer, used_slots, batch, now_ms=now_ms)


def claim_locked(
    session: Session,
    pending: LockedFires,
    candidates_by_group: Mapping[int, GroupCandidates],
    claimer: Claimer,
    used_slots: Counter[str],
    batch: ClaimBatch,
    *,
    now_ms: Millis,
    gate: Gate = OPEN_GATE,
) -> None:
    """Route, log and mark those of the locked fires that the gate admits, in their order."""
    run_by_id = pending.run_by_id
    routed_fires = _route(session, pending, candidates_by_group, claimer, used_slots, batch, gate)
    filling = fill_parameters(session, routed_fires, run_by_id, zone=claimer.zone)
    runs = write_logs(session, filling.routed_fires, run_by_id, now_ms)
    log_ids = {fire_id: run.log_id for fire_id, run in runs.items()}
    routed_fires = write_run_ids(session, filling, log_ids)
    mark_runs(session, routed_fires, log_ids)
    bulk.update_many(
        session,
        Fire,
        [
            mark(routed_fire, runs[routed_fire.fire.id], claimer, now_ms) | gate.columns(routed_fire.fire)
            for routed_fire in routed_fires
        ],
    )
    batch.claims += [
        claimed_run(
            routed_fire,
            runs[routed_fire.fire.id],
            claimer,
            _trace(routed_fire, claimer, gate, now_ms),
        )
        for routed_fire in routed_fires
        if routed_fire.addresses and routed_fire.fire.id not in filling.reasons
    ]
    _refuse(session, routed_fires, filling.reasons, runs, claimer, gate, now_ms)
    batch.waiting += gate.write(session)


def _route(
    session: Session,
    pending: LockedFires,
    candidates_by_group: Mapping[int, GroupCandidates],
    claimer: Claimer,
    used_slots: Counter[str],
    batch: ClaimBatch,
    gate: Gate,
) -> list[RoutedFire]:
    """Return the fires to claim, with their addresses; expands broadcasts, parks those without capacity."""
    routes = begin_routing(session, claimer.routes, {job.id for _, job in pending.to_run})
    routed_fires: list[RoutedFire] = []
    for fire, job in pending.to_run:
        candidates = candidates_by_group[job.job_group]
        if not gate.admits(fire, job, candidates):
            continue
        sent_to = pending.run_by_id[fire.log_id].address if fire.attempt and fire.log_id else None
        routed_fire = route_fire(session, fire, job, candidates, routes, sent_to=sent_to)
        if routed_fire is None:
            columns = gate.take(fire)
            batch.new_fires += expand_broadcast(session, fire, candidates, node=claimer.node, columns=columns)
            continue
        address = routed_fire.address
        if address is not None and used_slots[address] >= claimer.capacity(address):
            batch.parked_fires.setdefault(address, []).append(DueFire(fire.id, fire.job_id, fire.due_time))
        else:
            if address is not None:
                used_slots[address] += 1
            routed_fires.append(routed_fire)
            gate.take(fire)
    return routed_fires


def _trace(routed_fire: RoutedFire, claimer: Claimer, gate: Gate, now_ms: Millis) -> tuple[str, ...]:
    lines = gate.trace(routed_fire.fire)
    return trace_claim(routed_fire, node=claimer.node, zone=claimer.zone, now_ms=now_ms, admission=lines)


def lock_due(
    session: Session,
    due: Sequence[DueFire],
    now_ms: Millis,
    lock: Callable[[Session, Collection[int]], list[PendingFire]] = fires.lock_pending,
) -> LockedFires:
    """Return the fires to run, locked, with their jobs.

    Deletes fires without a job and those of runs that have ended.
    """
    # If the clock has been set back, a fire may not be due any more. The poll finds it again when it is.
    pending = prepared_fires.undo(
        session, [fire for fire in lock(session, [fire.id for fire in due]) if fire.due_time <= now_ms]
    )
    job_by_id = jobs.find_to_run(session, {fire.job_id for fire in pending})
    run_by_id = logs.find_unfinished(session, [fire.log_id for fire in pending if fire.log_id])
    to_run = [
        fire
        for fire in pending
        if fire.job_id in job_by_id and (fire.log_id is None or fire.log_id in run_by_id)
    ]
    fires.delete_fires(session, {fire.id for fire in pending} - {fire.id for fire in to_run})
    return LockedFires(
        [(fire, _job_for_run(session, job_by_id[fire.job_id], fire, run_by_id)) for fire in to_run],
        run_by_id,
    )


def _job_for_run(
    session: Session, job: JobToRun, fire: PendingFire, run_by_id: Mapping[int, UnfinishedRun]
) -> JobToRun:
    """Return the job with the handler and parameter of the run's log row once it may have been sent.

    The executor group is always that of the log row, because the addresses and the token of a group belong
    together. An executor may have the log id already, so that a second send must not differ from the first.
    GLUE source is always the current one, and so is its parameter. If the log row has only the beginning of a
    text, the text of the job is sent.
    """
    if fire.log_id is None:
        return job
    run = run_by_id[fire.log_id]
    job = job._replace(job_group=run.job_group)
    if not is_as_sent(fire, job, run):
        return job
    is_cut = partial(logs.is_cut, session)
    return job._replace(
        executor_handler=job.executor_handler if is_cut("executor_handler", run.handler) else run.handler,
        executor_param=job.executor_param if is_cut("executor_param", run.param) else run.param,
    )


def _refuse(
    session: Session,
    routed_fires: Sequence[RoutedFire],
    reasons: Mapping[int, Text],
    runs: Mapping[int, RunRow],
    claimer: Claimer,
    gate: Gate,
    now_ms: Millis,
) -> None:
    """End the runs that have no address, and those whose parameter could not be filled in.

    Of the latter, one that may have been sent earlier ends as unresolved.
    """
    unroutable_fires = [
        routed_fire
        for routed_fire in routed_fires
        if not routed_fire.addresses or routed_fire.fire.id in reasons
    ]
    if not unroutable_fires:
        return
    last = last_seen.find_last(session, {routed_fire.candidates.app_name for routed_fire in unroutable_fires})
    results = []
    for routed_fire in unroutable_fires:
        reason = reasons.get(routed_fire.fire.id)
        trace = join_lines(
            _trace(routed_fire, claimer, gate, now_ms),
            trace_unroutable(routed_fire, last, claimer.zone) if reason is None else trace_unfilled(reason),
        )
        source, code = Source.REFUSED, TriggerCode.REFUSED
        not_started = (
            NotStarted.DRAINED if routed_fire.candidates.drained_addresses else NotStarted.NO_INSTANCE
        )
        why = not_started.value if reason is None else NotStarted.PARAMETER.value
        if reason is not None and routed_fire.fire.attempt > 0:
            source, code, why = Source.RESOLVER, TriggerCode.UNRESOLVED, ""
        log_id = runs[routed_fire.fire.id].log_id
        results.append(Result(log_id, source, trigger_code=code, trace=trace, not_started=why))
    complete(session, results, now_ms=now_ms, holds_fires=True)


def find_unseen(node: str, *, after_id: int, now_ms: Millis, limit: int) -> list[DueFire]:
    """Return due PENDING fires that no ring holds; opens its own reading transaction."""
    return unseen_fires.find_unseen(
        owner=node, after_id=after_id, now_ms=now_ms, orphan_ms=ORPHAN_MS, limit=limit
    )
