"""Decisions of rounds: the run that follows, or why there is none. The caller holds the rounds' locks."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import announce_due_fires
from app.database.rows import bulk
from app.domain.enums import TriggerType
from app.domain.rounds.evaluation import RoundArrival, Verdict, evaluate
from app.domain.rounds.kinds import ArrivalOutcome, AtDeadline, RoundReason, RoundState
from app.domain.rounds.runs_after import RunsAfter, parse_runs_after
from app.domain.schedules.planning import SkippedRange
from app.models.round import Round
from app.pipeline.rounds.opening import is_gate
from app.pipeline.skips import skip_row
from app.store.fires import queue as fires
from app.store.fires.queue import FOLLOWER, NewFire
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob
from app.store.jobs.skips import insert_skips
from app.store.rounds import rounds
from app.store.rounds.following import FollowerRow
from app.store.rounds.rounds import RoundRow

#: reasons of skips: a predecessor did not succeed, or a round was not complete in time
PREDECESSOR, DEADLINE = "predecessor", "deadline"
#: columns that a decision writes
_WRITTEN = (
    "id",
    "logical_ms",
    "state",
    "reason",
    "epoch",
    "deadline_ms",
    "due_ms",
    "decided_ms",
    "cause_log_id",
    "incomplete",
)


@dataclass(frozen=True, slots=True)
class Change:
    """A locked round with what has arrived."""

    row: RoundRow
    #: its job
    follower: FollowerRow
    arrivals: Collection[RoundArrival]
    #: those that came just now
    fresh: Sequence[RoundArrival] = ()
    #: a user asked for them
    is_by_hand: bool = False
    #: its wait is over
    is_over: bool = False
    #: the monitor has looked at it
    is_look: bool = False

    @property
    def is_gate(self) -> bool:
        """Whether the instants of a schedule wait for it."""
        return is_gate(self.follower, self.row.chain)


@dataclass(slots=True)
class _Decisions:
    """What decisions write."""

    rows: list[RoundRow] = field(default_factory=list)
    reopened_rounds: list[RoundRow] = field(default_factory=list)
    started_rounds: list[tuple[Change, RoundRow]] = field(default_factory=list)
    not_run: list[tuple[Change, RoundRow]] = field(default_factory=list)


def may_reopen(state: str, reason: str, *, is_by_hand: bool = True) -> bool:
    """Return whether a success decides a round anew; after its deadline only that of a run by hand does."""
    if state != RoundState.NOT_RUN:
        return False
    return reason == RoundReason.PREDECESSOR or (reason == RoundReason.DEADLINE and is_by_hand)


def decide(session: Session, changes: Iterable[Change], *, now_ms: Millis) -> None:
    """Decide rounds in which something has arrived, or whose wait is over."""
    decisions = _Decisions()
    for change in changes:
        _decide(change, parse_runs_after(change.follower.runs_after), decisions, now_ms)
    names = _WRITTEN
    bulk.update_many(session, Round, [{name: getattr(row, name) for name in names} for row in decisions.rows])
    rounds.delete_skips(session, decisions.reopened_rounds)
    _start(session, decisions, now_ms)
    _skip(session, decisions.not_run, now_ms)


def _decide(change: Change, rule: RunsAfter | None, decisions: _Decisions, now_ms: Millis) -> None:
    row = change.row
    if row.state == RoundState.STARTED or (rule is None and row.state != RoundState.OPEN):
        return
    if rule is None:
        _note(change, row, Verdict(RoundState.NOT_RUN, RoundReason.EDITED), decisions, now_ms)
        return
    if row.state == RoundState.NOT_RUN:
        is_success = any(arrival.outcome is ArrivalOutcome.SUCCEEDED for arrival in change.fresh)
        if not is_success or not may_reopen(row.state, row.reason, is_by_hand=change.is_by_hand):
            return
        decisions.reopened_rounds.append(row)
        end_ms = max(row.deadline_ms, now_ms + rule.wait_ms)
        row = row._replace(
            state=RoundState.OPEN, reason="", cause_log_id=None, decided_ms=0, deadline_ms=end_ms
        )
    verdict = evaluate(rule, change.arrivals)
    is_incomplete = False
    if verdict.state is RoundState.OPEN and change.is_over:
        is_incomplete = rule.at_deadline is AtDeadline.RUN and rule.deadline_s > 0
        verdict = Verdict(RoundState.STARTED) if is_incomplete else _too_late(change.arrivals)
    _note(change, row, verdict, decisions, now_ms, is_incomplete=is_incomplete)


def _note(
    change: Change,
    row: RoundRow,
    verdict: Verdict,
    decisions: _Decisions,
    now_ms: Millis,
    *,
    is_incomplete: bool = False,
) -> None:
    row = row._replace(
        state=verdict.state.value,
        reason=verdict.reason.value if verdict.reason is not None else "",
        epoch=row.epoch + 1,
        due_ms=_next_look(change, row),
        incomplete=int(is_incomplete),
    )
    if verdict.state is not RoundState.OPEN:
        cause = verdict.cause.log_id if verdict.cause is not None else None
        due_ms = now_ms if verdict.state is RoundState.NOT_RUN else 0
        row = row._replace(decided_ms=now_ms, due_ms=due_ms, cause_log_id=cause)
    decisions.rows.append(row)
    if verdict.state is RoundState.STARTED:
        decisions.started_rounds.append((change, row))
    elif verdict.state is RoundState.NOT_RUN:
        decisions.not_run.append((change, row))


def _next_look(change: Change, row: RoundRow) -> Millis:
    """Return when the monitor looks at an open round next: one look at it when it is opened may be due."""
    if change.is_look or not row.due_ms:
        return row.deadline_ms
    return min(row.due_ms, row.deadline_ms)


def _too_late(arrivals: Collection[RoundArrival]) -> Verdict:
    """Return the verdict of a round whose wait is over; its cause is what failed first, if anything has."""
    failed = [
        arrival for arrival in arrivals if arrival.outcome is not ArrivalOutcome.SUCCEEDED and arrival.log_id
    ]
    cause = min(failed, key=lambda arrival: (arrival.at_ms, arrival.log_id or 0), default=None)
    return Verdict(RoundState.NOT_RUN, RoundReason.DEADLINE, cause)


def _start(session: Session, decisions: _Decisions, now_ms: Millis) -> None:
    """Insert the runs that follow; instants that wait for a round are claimed by the next look at them."""
    new = [
        _follower_fire(row, change.fresh, row.logical_ms, now_ms)
        for change, row in decisions.started_rounds
        if not change.is_gate
    ]
    gates = {row.id: (change, row) for change, row in decisions.started_rounds if change.is_gate}
    if gates:
        # Instants may have been skipped before the round was decided anew.
        awaited_ids = rounds.find_awaited(session, gates)
        left = [row for round_id, (_, row) in gates.items() if round_id not in awaited_ids]
        last_ms = dict(sorted(rounds.find_skipped_instants(session, left)))
        for round_id, skipped_ms in last_ms.items():
            change, row = gates[round_id]
            new.append(_follower_fire(row, change.fresh, skipped_ms, now_ms))
    fires.insert_unless_known(session, new, now_ms=now_ms)
    if gates:
        announce_due_fires(session)


def _follower_fire(
    row: RoundRow, fresh: Sequence[RoundArrival], logical_ms: Millis, now_ms: Millis
) -> NewFire:
    last = fresh[-1].log_id if fresh else None
    return NewFire(
        f"{FOLLOWER}:{row.id}:{last or 0}",
        row.job_id,
        now_ms,
        TriggerType.AFTER,
        logical_ms=logical_ms,
        chain=row.chain,
        round_id=row.id,
    )


def _skip(session: Session, not_run: Iterable[tuple[Change, RoundRow]], now_ms: Millis) -> None:
    """Record the runs that do not follow; the instants of a schedule are skipped when they are due."""
    skipped_rounds = [
        row for change, row in not_run if not change.is_gate and row.reason != RoundReason.EXCUSED
    ]
    insert_round_skips(
        session,
        [(row, row.logical_ms) for row in skipped_rounds],
        trigger_type=TriggerType.AFTER.value,
        now_ms=now_ms,
    )


def insert_round_skips(
    session: Session, skipped_rounds: Sequence[tuple[RoundRow, Millis]], *, trigger_type: str, now_ms: Millis
) -> dict[int, DueJob]:
    """Record runs or instants of rounds that were not run, each with its time; return the jobs that exist.

    ``trigger_type``: empty for the instants of a schedule.
    """
    if not skipped_rounds:
        return {}
    job_by_id = jobs.find_planned(session, {row.job_id for row, _ in skipped_rounds})
    rows = [
        _skip_row(row, at_ms, now_ms) | {"trigger_type": trigger_type}
        for row, at_ms in skipped_rounds
        if row.job_id in job_by_id
    ]
    insert_skips(session, rows, job_by_id)
    return job_by_id


def _skip_row(row: RoundRow, at_ms: Millis, now_ms: Millis) -> bulk.Row:
    reason = DEADLINE if row.reason == RoundReason.DEADLINE else PREDECESSOR
    skip = skip_row(row.job_id, SkippedRange(at_ms, at_ms, 1), reason=reason, now_ms=now_ms)
    return skip | {"round_id": row.id}
