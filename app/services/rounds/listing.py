"""Rounds as users see them: what has arrived, what is missing, and what became of each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import FireState, TriggerType
from app.domain.rounds.evaluation import RoundArrival, outcome_of
from app.domain.rounds.kinds import ArrivalOutcome, RoundState
from app.domain.rounds.round_keys import round_key
from app.domain.rounds.runs_after import RunsAfter, parse_runs_after
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.base import zone_name
from app.store.accounts.audit import find_runs as find_visible
from app.store.rounds import listing, rounds
from app.store.rounds.listing import OpenFire, RoundFilter, RoundJob
from app.store.rounds.rounds import RoundRow

__all__ = ["RoundFilter"]

MISSING = N_("There is no such round; it may have been deleted")
#: states of runs that have begun
_BEGUN = frozenset({FireState.ROUTING, FireState.SENDING, FireState.ACCEPTED, FireState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class PredecessorView:
    """A predecessor in a round."""

    #: 0: of a group that the actor may not view
    job_id: int
    #: None: foreign, or gone
    name: str | None
    #: None: nothing has arrived, or not enough of a broadcast
    outcome: ArrivalOutcome | None
    #: whether a run of it that belongs to the round has begun and not ended
    is_running: bool
    #: its run, or the one because of which it did not run; None: none, or not visible
    log_id: int | None
    #: when its retry is due
    retry_ms: Millis | None
    #: why it did not run
    reason: str
    succeeded_shards: int
    total_shards: int
    #: when it arrived last
    at_ms: Millis | None
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class RoundView:
    """A round of a job."""

    id: int
    job_id: int
    job_name: str
    group_id: int
    key: str
    logical_ms: Millis
    #: number of the trigger that asked for the chain; None: none did
    chain: int | None
    #: RoundState
    state: str
    #: RoundReason; empty unless it was not run
    reason: str
    opened_ms: Millis
    deadline_ms: Millis
    #: 0: it is open
    decided_ms: Millis
    #: started at its deadline, without all that it waited for
    incomplete: bool
    #: first run of the job in it; None: none yet
    log_id: int | None
    #: run because of which it was not run; None: none, or not visible
    cause_log_id: int | None
    predecessors: tuple[PredecessorView, ...]


def list_rounds(
    session: Session, criteria: RoundFilter, *, actor: Actor, before_id: int = 0, limit: int
) -> list[RoundView]:
    """Return the newest rounds of jobs that the actor may view, with ids below ``before_id`` (0: all).

    The number of statements does not depend on that of the rounds.
    """
    group_ids = actor.group_ids(Right.VIEW)
    rows = listing.list_rounds(session, criteria, group_ids, before_id=before_id, limit=limit)
    return _views(session, rows, actor)


def show_round(session: Session, round_id: int, *, actor: Actor) -> RoundView:
    """Return a round; raises NotFound if there is none, or none that the actor may see."""
    rows = listing.find_rounds(session, [round_id])
    job = listing.find_jobs(session, [row.job_id for row in rows]).get(rows[0].job_id) if rows else None
    if job is None:
        raise NotFound(MISSING)
    require_right(actor, job.job_group, Right.VIEW, missing=MISSING)
    return _views(session, rows, actor)[0]


def find_views(session: Session, round_ids: Collection[int], *, actor: Actor) -> dict[int, RoundView]:
    """Return those of the rounds that the actor may view, by id."""
    rows = listing.find_rounds(session, round_ids) if round_ids else []
    views = _views(session, rows, actor)
    return {view.id: view for view in views if actor.may(view.group_id, Right.VIEW)}


def _views(session: Session, rows: Sequence[RoundRow], actor: Actor) -> list[RoundView]:
    if not rows:
        return []
    by_round = rounds.find_arrivals(session, [row.id for row in rows])
    followers = listing.find_jobs(session, {row.job_id for row in rows})
    rules = {job_id: parse_runs_after(job.runs_after) for job_id, job in followers.items()}
    ids_by_round = {row.id: _predecessors(rules.get(row.job_id), by_round[row.id]) for row in rows}
    jobs = listing.find_jobs(session, {job_id for ids in ids_by_round.values() for job_id in ids})
    waiting = {job_id for row in rows if row.state == RoundState.OPEN for job_id in ids_by_round[row.id]}
    page = _Page(
        jobs,
        listing.find_open_fires(session, waiting),
        _visible_runs(session, rows, by_round, actor),
        actor,
    )
    return [
        page.view(row, followers[row.job_id], rules[row.job_id], ids_by_round[row.id], by_round[row.id])
        for row in rows
        if row.job_id in followers
    ]


def _predecessors(rule: RunsAfter | None, arrivals: Sequence[RoundArrival]) -> list[int]:
    """Return the predecessors of a round: those of the job, and others that had arrived before an edit."""
    ids = [*(rule.jobs if rule is not None else ()), *sorted(arrival.predecessor_id for arrival in arrivals)]
    return list(dict.fromkeys(ids))


def _visible_runs(
    session: Session, rows: Sequence[RoundRow], by_round: Mapping[int, Sequence[RoundArrival]], actor: Actor
) -> Collection[int]:
    log_ids = {arrival.log_id for arrivals in by_round.values() for arrival in arrivals}
    log_ids |= {row.cause_log_id for row in rows}
    ids = {log_id for log_id in log_ids if log_id is not None}
    return find_visible(session, ids, group_ids=actor.group_ids(Right.VIEW)) if ids else frozenset()


@dataclass(frozen=True, slots=True)
class _Page:
    """What the rounds of a page have in common."""

    jobs: Mapping[int, RoundJob]
    fires: Sequence[OpenFire]
    visible_runs: Collection[int]
    actor: Actor

    def view(
        self,
        row: RoundRow,
        job: RoundJob,
        rule: RunsAfter | None,
        predecessor_ids: Sequence[int],
        arrivals: Sequence[RoundArrival],
    ) -> RoundView:
        """Return a round as users see it."""
        fires = [fire for fire in self.fires if _belongs(fire, row, job, rule)]
        predecessors = (
            self._predecessor(
                job_id,
                rule,
                [arrival for arrival in arrivals if arrival.predecessor_id == job_id],
                [fire for fire in fires if fire.job_id == job_id],
            )
            for job_id in predecessor_ids
        )
        return RoundView(
            id=row.id,
            job_id=row.job_id,
            job_name=job.job_desc,
            group_id=job.job_group,
            key=row.round_key,
            logical_ms=row.logical_ms,
            chain=row.chain,
            state=row.state,
            reason=row.reason,
            opened_ms=row.opened_ms,
            deadline_ms=row.deadline_ms,
            decided_ms=row.decided_ms,
            incomplete=bool(row.incomplete),
            log_id=row.log_id,
            cause_log_id=row.cause_log_id if row.cause_log_id in self.visible_runs else None,
            predecessors=tuple(predecessors),
        )

    def _predecessor(
        self,
        job_id: int,
        rule: RunsAfter | None,
        arrivals: Sequence[RoundArrival],
        fires: Sequence[OpenFire],
    ) -> PredecessorView:
        job = self.jobs.get(job_id)
        is_foreign = job is not None and not self.actor.may(job.job_group, Right.VIEW)
        outcome = outcome_of(rule or RunsAfter((job_id,)), arrivals)
        # of a broadcast that has failed the shards that have, not those that ended after them
        telling = [arrival for arrival in arrivals if arrival.outcome is outcome] or arrivals
        newest = max(telling, key=lambda arrival: (arrival.at_ms, arrival.log_id or 0), default=None)
        total = newest.total if newest is not None else 1
        successes = (arrival for arrival in arrivals if arrival.outcome is ArrivalOutcome.SUCCEEDED)
        retries = [fire.due_ms for fire in fires if fire.trigger_type == TriggerType.RETRY]
        return PredecessorView(
            job_id=0 if is_foreign else job_id,
            name=None if job is None or is_foreign else job.job_desc,
            outcome=outcome,
            is_running=any(fire.state in _BEGUN for fire in fires),
            log_id=newest.log_id if newest is not None and newest.log_id in self.visible_runs else None,
            retry_ms=min(retries, default=None),
            reason=newest.reason if newest is not None else "",
            succeeded_shards=sum(arrival.shard < total for arrival in successes),
            total_shards=total,
            at_ms=newest.at_ms if newest is not None else None,
            is_foreign=is_foreign,
        )


def _belongs(fire: OpenFire, row: RoundRow, job: RoundJob, rule: RunsAfter | None) -> bool:
    """Whether a run that is on its way will arrive in a round that is open."""
    if row.state != RoundState.OPEN or rule is None:
        return False
    if row.chain is not None:
        return fire.chain == row.chain
    key = round_key(rule.round, fire.logical_ms, zone=job.time_zone or zone_name(), chain=fire.chain)
    return key in ("", row.round_key)
