"""Ends of runs and skips, as they arrive in the rounds of the jobs that follow."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import TriggerType
from app.domain.jobs.children import valid_children
from app.domain.rounds.kinds import ArrivalOutcome
from app.domain.rounds.round_keys import in_chain
from app.domain.runs.logical_times import logical_of
from app.domain.runs.sharding import WHOLE, parse_shard
from app.domain.schedules.schedule import next_after_ms
from app.errors import InvalidInput
from app.models.base import zone_name
from app.pipeline.rounds.arrivals import Outcome, arrive
from app.store.fires import queue as fires
from app.store.fires.logs import RunState
from app.store.fires.queue import PendingFire
from app.store.jobs.of_results import JobOfResult
from app.store.jobs.scheduling import DueJob, schedule_of
from app.store.jobs.skips import insert_skips
from app.store.rounds import following

#: outcomes of a run that no child follows
_WITHOUT_CHILDREN = (ArrivalOutcome.FAILED, ArrivalOutcome.UNRESOLVED)
#: instants of one skip that arrive each by itself; of a longer one only the last does
INSTANTS_MAX = 100


class End(NamedTuple):
    """End of a run."""

    run: RunState
    outcome: ArrivalOutcome


def arrive_ends(
    session: Session, ends: Iterable[End], job_by_id: Mapping[int, JobOfResult], *, now_ms: Millis
) -> None:
    """Write the ends of runs into the rounds of the jobs that follow theirs."""
    outcomes = list[Outcome]()
    lost_outcomes = list[Outcome]()
    for end in ends:
        job = job_by_id.get(end.run.job_id)
        if job is None or not (job.has_followers or end.run.chain):
            continue
        if (logical_ms := logical_of(end.run)) is None:
            continue
        outcome = _outcome(end, logical_ms)
        if job.has_followers:
            outcomes.append(outcome)
        if in_chain(end.run.chain) and end.outcome in _WITHOUT_CHILDREN and job.child_jobid:
            lost_outcomes.append(outcome)
    if lost_outcomes:
        outcomes += without_children(session, lost_outcomes)
    if outcomes:
        arrive(session, outcomes, now_ms=now_ms)


def _outcome(end: End, logical_ms: Millis) -> Outcome:
    run = end.run
    shard = parse_shard(run.executor_sharding_param) or WHOLE
    is_by_hand = run.trigger_type in (TriggerType.MANUAL, TriggerType.BACKFILL)
    return Outcome(
        run.job_id,
        logical_ms,
        end.outcome,
        run.id,
        run.chain,
        shard.index,
        shard.total,
        is_replaced=run.is_replaced,
        is_by_hand=is_by_hand,
    )


def without_children(session: Session, ends: Sequence[Outcome]) -> list[Outcome]:
    """Return that the children of these, and theirs, do not run in their chain; they run after a success."""
    outcomes: dict[tuple[int | None, int], Outcome] = {}
    parents = {(outcome.chain, outcome.job_id): outcome for outcome in ends}
    while parents:
        texts = following.find_children(session, {job_id for _, job_id in parents})
        children = {
            (chain, child): parent._replace(
                job_id=child, outcome=ArrivalOutcome.NOT_RUN, shard=0, total=1, is_by_hand=False
            )
            for (chain, job_id), parent in parents.items()
            for child in valid_children(texts.get(job_id), job_id)
            if (chain, child) not in outcomes
        }
        outcomes |= children
        parents = children
    return list(outcomes.values())


def record_skips(
    session: Session, rows: Sequence[bulk.Row], job_by_id: Mapping[int, DueJob], *, now_ms: Millis
) -> None:
    """Insert skips of instants of these jobs; they arrive in the rounds of the jobs that follow."""
    insert_skips(session, rows, job_by_id)
    outcomes = [
        Outcome(row["job_id"], at_ms, ArrivalOutcome.NOT_RUN, None, reason=row["reason"])
        for row in rows
        if job_by_id[row["job_id"]].has_followers
        for at_ms in _instants(job_by_id[row["job_id"]], row)
    ]
    if outcomes:
        arrive(session, outcomes, now_ms=now_ms)


def _instants(job: DueJob, row: bulk.Row) -> list[Millis]:
    if row["skipped"] > INSTANTS_MAX:
        return [row["to_ms"]]
    schedule, instants = schedule_of(job, zone_name()), [row["from_ms"]]
    try:
        while instants[-1] < row["to_ms"] and len(instants) < INSTANTS_MAX:
            next_ms = next_after_ms(schedule, instants[-1])
            if next_ms is None:
                break
            instants.append(next_ms)
    except (ValueError, InvalidInput):  # Its ends are known, whatever the schedule was.
        instants.append(row["to_ms"])
    return [at_ms for at_ms in instants if at_ms <= row["to_ms"]]


def arrive_skipped(
    session: Session,
    skipped_fires: Iterable[PendingFire],
    job_ids: Collection[int],
    *,
    reason: str,
    now_ms: Millis,
) -> None:
    """Write skipped fires into the rounds of the jobs that follow; ``job_ids``: the jobs that have followers.

    The retry of a run that is skipped leaves that run failed. In a chain the children do not run either.
    """
    outcomes, in_chains = list[Outcome](), list[Outcome]()
    for fire in skipped_fires:
        shard = parse_shard(fire.sharding_param) or WHOLE
        is_retry = fire.trigger_type == TriggerType.RETRY
        outcome = Outcome(
            fire.job_id,
            fire.logical_time,
            ArrivalOutcome.FAILED if is_retry else ArrivalOutcome.NOT_RUN,
            fires.source_of(fire.fire_key) if is_retry else None,
            fire.chain,
            shard.index,
            shard.total,
            reason=reason,
        )
        if fire.job_id in job_ids:
            outcomes.append(outcome)
        if in_chain(fire.chain):
            in_chains.append(outcome)
    if in_chains:
        outcomes += without_children(session, in_chains)
    if outcomes:
        arrive(session, outcomes, now_ms=now_ms)
