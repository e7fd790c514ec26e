"""Evaluation of a round: whether its job runs, by the rule and what has arrived. Pure.

docs/reference/rounds.md. The order in which arrivals come does not matter, nor whether one comes twice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.clock import Millis
from app.domain.rounds.kinds import ArrivalOutcome, RoundReason, RoundRule, RoundState, ShardRule
from app.domain.rounds.runs_after import RunsAfter

#: outcomes that are final unless a later run of the same round succeeds
BAD = frozenset({ArrivalOutcome.FAILED, ArrivalOutcome.UNRESOLVED, ArrivalOutcome.NOT_RUN})


class RoundArrival(NamedTuple):
    """What became of a predecessor, or of one shard of it."""

    predecessor_id: int
    shard: int
    #: number of shards
    total: int
    outcome: ArrivalOutcome
    at_ms: Millis
    #: its run, or the one that caused that it did not run; None: none
    log_id: int | None = None
    #: reason of the skip or round of one that did not run
    reason: str = ""


def supersedes(new: RoundArrival, former: RoundArrival | None) -> bool:
    """Return whether an arrival takes the place of the one that was there: a success stays.

    Of two others the later run counts; one that did not run at all counts only while nothing else is known.
    """
    if former is None:
        return True
    return (_is_success(new), _rank(new)) > (_is_success(former), _rank(former))


def _rank(arrival: RoundArrival) -> tuple[int, int, int]:
    """Return the place of an arrival: of the same run the final outcome is the later one."""
    is_run = arrival.outcome not in (ArrivalOutcome.NOT_RUN, ArrivalOutcome.EXCUSED)
    return is_run, arrival.log_id or 0, _FINALITY.index(arrival.outcome)


_FINALITY = (
    ArrivalOutcome.EXCUSED,
    ArrivalOutcome.NOT_RUN,
    ArrivalOutcome.UNRESOLVED,
    ArrivalOutcome.RETRYING,
    ArrivalOutcome.FAILED,
    ArrivalOutcome.SUCCEEDED,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a round."""

    state: RoundState
    reason: RoundReason | None = None
    #: arrival because of which it is not run
    cause: RoundArrival | None = None


OPEN = Verdict(RoundState.OPEN)
STARTED = Verdict(RoundState.STARTED)


def evaluate(rule: RunsAfter, arrivals: Iterable[RoundArrival]) -> Verdict:
    """Return what becomes of a round with these arrivals, at most one of each predecessor and shard."""
    job_ids = set(rule.jobs)
    by_predecessor: dict[int, list[RoundArrival]] = {}
    for arrival in arrivals:
        if arrival.predecessor_id in job_ids:
            by_predecessor.setdefault(arrival.predecessor_id, []).append(arrival)
    outcomes = [outcome_of(rule, of_job) for of_job in by_predecessor.values()]
    count = len(job_ids) - outcomes.count(ArrivalOutcome.EXCUSED)
    if not count:
        return Verdict(RoundState.NOT_RUN, RoundReason.EXCUSED)
    bad = sum(map(outcomes.count, BAD))
    good = outcomes.count(ArrivalOutcome.SUCCEEDED)
    if rule.rule is RoundRule.ALL_ENDED:
        return STARTED if good + bad == count else OPEN
    need = _need(rule, count)
    if good >= need:
        return STARTED
    if count - bad >= need:
        return OPEN
    bad_ids = [job_id for job_id, outcome in zip(by_predecessor, outcomes, strict=True) if outcome in BAD]
    return Verdict(RoundState.NOT_RUN, RoundReason.PREDECESSOR, _first_cause(by_predecessor, bad_ids))


def _need(rule: RunsAfter, count: int) -> int:
    if rule.rule is RoundRule.ANY_SUCCEEDED:
        return 1
    return min(rule.k, count) if rule.rule is RoundRule.K_OF_N else count


def _first_cause(
    by_predecessor: Mapping[int, Sequence[RoundArrival]], bad_ids: Collection[int]
) -> RoundArrival | None:
    bad = [arrival for job_id in bad_ids for arrival in by_predecessor[job_id] if arrival.outcome in BAD]
    return min(bad, key=lambda arrival: (arrival.at_ms, arrival.predecessor_id, arrival.shard), default=None)


def outcome_of(rule: RunsAfter, arrivals: Sequence[RoundArrival]) -> ArrivalOutcome | None:
    """Return what became of a predecessor, by its shards; None: nothing has arrived, or not enough."""
    if not arrivals:
        return None
    if len(arrivals) == 1 and arrivals[0].total <= 1:
        return arrivals[0].outcome
    newest = max(arrivals, key=_rank)
    of_run = [arrival for arrival in arrivals if arrival.shard < newest.total]
    if newest.total <= 1:
        shards = [arrival for arrival in arrivals if arrival.total > 1]
        has_succeeded = outcome_of(rule, shards) is ArrivalOutcome.SUCCEEDED
        return ArrivalOutcome.SUCCEEDED if has_succeeded else newest.outcome
    good = sum(map(_is_success, of_run))
    bad = sum(arrival.outcome in BAD for arrival in of_run)
    need = {ShardRule.ALL: newest.total, ShardRule.ANY: 1}.get(rule.shards, min(rule.shards_k, newest.total))
    if good >= need:
        return ArrivalOutcome.SUCCEEDED
    if newest.total - bad < need:
        return ArrivalOutcome.FAILED
    is_retrying = any(arrival.outcome is ArrivalOutcome.RETRYING for arrival in of_run)
    return ArrivalOutcome.RETRYING if is_retrying else None


def _is_success(arrival: RoundArrival) -> bool:
    return arrival.outcome is ArrivalOutcome.SUCCEEDED
