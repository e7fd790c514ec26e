"""Watch over rounds, by the monitor: ends of waits, edited rules, and what was not run because of others."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.engine import transact
from app.domain.rounds.evaluation import RoundArrival
from app.domain.rounds.kinds import ArrivalOutcome, RoundReason, RoundState
from app.domain.rounds.runs_after import parse_runs_after
from app.pipeline.rounds.arrivals import Outcome, arrive
from app.pipeline.rounds.decisions import Change, decide
from app.pipeline.rounds.ends import without_children
from app.pipeline.rounds.excuses import find_excused
from app.pipeline.rounds.opening import is_gate
from app.store.jobs.scheduling import find_names
from app.store.rounds import following, rounds
from app.store.rounds.following import FollowerRow
from app.store.rounds.rounds import RoundRow

logger = logging.getLogger(__name__)

#: period of a look
PERIOD_MS: Millis = SECOND_MS
#: rounds of one transaction
ROWS = 200
#: reason of a predecessor that is gone
DELETED = "deleted"


def tick_rounds(now_ms: Millis) -> Millis:
    """Look at the rounds that are due; return the wait until the next look. Opens its own transactions."""
    due_ids = rounds.find_due(now_ms=now_ms, limit=ROWS)
    if not due_ids:
        return PERIOD_MS
    not_run = transact(partial(_look, round_ids=due_ids, now_ms=now_ms))
    if not_run:
        # By then the locks of these rounds are gone: those of the jobs that follow may have lower ids.
        transact(partial(_pass_on, not_run=not_run, now_ms=now_ms))
        transact(partial(rounds.mark_passed_on, rounds=not_run))
        logger.info("rounds not run round_ids=%s", [row.id for row in not_run])
    return 0 if len(due_ids) == ROWS or not_run else PERIOD_MS


def _look(session: Session, round_ids: Sequence[int], now_ms: Millis) -> list[RoundRow]:
    """Decide the open ones; return those that were not run, of which the jobs that follow are to know."""
    row_by_id = rounds.lock_rounds(session, round_ids)
    due = [row for row in row_by_id.values() if 0 < row.due_ms <= now_ms]
    open_rounds = [row for row in due if row.state == RoundState.OPEN]
    jobs = following.find_jobs(session, {row.job_id for row in due})
    arrivals_by_round = rounds.find_arrivals(session, [row.id for row in open_rounds])
    missing_ids = _find_gone(session, open_rounds, jobs)
    excused_arrivals = find_excused(session, open_rounds, jobs, arrivals_by_round, now_ms=now_ms)
    rounds.delete_rounds(session, [row.id for row in due if row.job_id not in jobs])
    changes = []
    for row in open_rounds:
        if (job := jobs.get(row.job_id)) is None:
            continue
        fresh = [
            *_arrivals_of_deleted(row, job, arrivals_by_round[row.id], missing_ids, now_ms),
            *excused_arrivals.get(row.id, ()),
        ]
        places = {(arrival.predecessor_id, arrival.shard) for arrival in fresh}
        others = [
            arrival
            for arrival in arrivals_by_round[row.id]
            if (arrival.predecessor_id, arrival.shard) not in places
        ]
        is_over = row.deadline_ms <= now_ms
        changes.append(Change(row, job, [*others, *fresh], fresh, is_over=is_over, is_look=True))
    rounds.write_arrivals(
        session, [(change.row.id, arrival) for change in changes for arrival in change.fresh]
    )
    decide(session, changes, now_ms=now_ms)
    return [row for row in due if row.state == RoundState.NOT_RUN and row.job_id in jobs]


def _find_gone(
    session: Session, open_rounds: Iterable[RoundRow], jobs: Mapping[int, FollowerRow]
) -> set[int]:
    """Return the predecessors that do not exist any more."""
    ids = set[int]()
    for row in open_rounds:
        rule = parse_runs_after(jobs[row.job_id].runs_after) if row.job_id in jobs else None
        ids |= set(rule.jobs) if rule is not None else set()
    return ids - find_names(session, ids).keys()


def _arrivals_of_deleted(
    row: RoundRow,
    job: FollowerRow,
    round_arrivals: Sequence[RoundArrival],
    missing_ids: set[int],
    now_ms: Millis,
) -> list[RoundArrival]:
    rule = parse_runs_after(job.runs_after)
    new_arrivals = list[RoundArrival]()
    for job_id in set(rule.jobs if rule is not None else ()) & missing_ids:
        of_job = [arrival for arrival in round_arrivals if arrival.predecessor_id == job_id]
        # A retry that was planned does not come, nor do shards that have not arrived.
        new_arrivals += [
            arrival._replace(outcome=ArrivalOutcome.FAILED, at_ms=now_ms, reason=DELETED)
            for arrival in of_job
            if arrival.outcome is ArrivalOutcome.RETRYING
        ]
        total = max((arrival.total for arrival in of_job), default=1)
        new_arrivals += [
            RoundArrival(job_id, shard, total, ArrivalOutcome.NOT_RUN, now_ms, None, DELETED)
            for shard in sorted({*range(total)} - {arrival.shard for arrival in of_job})
        ]
    return new_arrivals


def _pass_on(session: Session, not_run: Sequence[RoundRow], now_ms: Millis) -> None:
    """Write that the jobs of these rounds did not run into the rounds of those that follow them.

    Of a gate its skipped instants arrive, which may stand for other times than what has arrived in its round.
    """
    jobs = following.find_jobs(session, {row.job_id for row in not_run})
    gates = {row.id: row for row in not_run if row.job_id in jobs and is_gate(jobs[row.job_id], row.chain)}
    outcomes = [_not_run(row, row.logical_ms) for row in not_run if row.id not in gates]
    skipped_instants = rounds.find_skipped_instants(session, list(gates.values()))
    outcomes += [_not_run(gates[round_id], at_ms) for round_id, at_ms in skipped_instants]
    in_chains = [outcome for outcome in outcomes if outcome.chain]
    if in_chains:
        outcomes += without_children(session, in_chains)
    arrive(session, outcomes, now_ms=now_ms)


def _not_run(row: RoundRow, logical_ms: Millis) -> Outcome:
    is_excused = row.reason == RoundReason.EXCUSED
    return Outcome(
        row.job_id,
        logical_ms,
        ArrivalOutcome.EXCUSED if is_excused else ArrivalOutcome.NOT_RUN,
        row.cause_log_id,
        row.chain,
        reason=row.reason,
    )
