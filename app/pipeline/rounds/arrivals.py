"""Arrivals: what becomes of runs, written into the rounds of the jobs that run after them.

docs/reference/rounds.md. In the caller's transaction, which holds no lock that comes after those of rounds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.rounds.evaluation import RoundArrival, supersedes
from app.domain.rounds.kinds import ArrivalOutcome, RoundKind, RoundState
from app.domain.rounds.round_keys import FOR_NO_TIME, NONE_FOLLOWS, in_chain, round_key, since_key
from app.domain.rounds.runs_after import LONGEST_MS, RunsAfter, parse_runs_after
from app.models.base import zone_name
from app.pipeline.rounds.decisions import Change, decide, may_reopen
from app.pipeline.rounds.excuses import looks_ahead
from app.pipeline.rounds.opening import is_gate, lock_rounds, new_round
from app.store.rounds import following, rounds
from app.store.rounds.following import FollowerRow
from app.store.rounds.rounds import LastDecided, RoundName, RoundRow


class Outcome(NamedTuple):
    """What became of a run or a shard of one, or of an instant that was not run."""

    job_id: int
    logical_ms: Millis
    outcome: ArrivalOutcome
    #: its run, or the one because of which it did not run; None: none
    log_id: int | None
    #: `chain` of the run
    chain: int | None = None
    shard: int = 0
    total: int = 1
    #: reason of the skip or round of one that did not run
    reason: str = ""
    #: it was killed for a newer run of its job, which is to come
    is_replaced: bool = False
    #: a user asked for it
    is_by_hand: bool = False


@dataclass(slots=True)
class _Entry:
    """A round and what arrives in it."""

    follower: FollowerRow
    rule: RunsAfter
    logical_ms: Millis
    chain: int | None
    arrivals: list[RoundArrival] = field(default_factory=list)
    is_by_hand: bool = False

    @property
    def has_success(self) -> bool:
        return any(arrival.outcome is ArrivalOutcome.SUCCEEDED for arrival in self.arrivals)

    @property
    def is_since_last(self) -> bool:
        return self.rule.round is RoundKind.SINCE_LAST and self.chain is None


def arrive(session: Session, outcomes: Sequence[Outcome], *, now_ms: Millis) -> None:
    """Write outcomes into the rounds they belong to, open those that are new, and decide them."""
    followers = following.find_followers(session, {outcome.job_id for outcome in outcomes})
    if not followers:
        return
    entries = _with_names(session, _entries(outcomes, followers, now_ms))
    row_by_name = _lock(session, entries, now_ms)
    if later_entries := _find_later(session, entries, row_by_name):
        entries = {
            name: entry for name, entry in entries.items() if entry not in later_entries.values()
        } | later_entries
        row_by_name |= _lock(session, later_entries, now_ms)
    here = {name: entry for name, entry in entries.items() if name in row_by_name}
    arrivals = rounds.find_arrivals(session, {row_by_name[name].id for name in here})
    changes, new, changed_arrivals = (
        list[Change](),
        list[tuple[int, RoundArrival]](),
        list[tuple[int, RoundArrival]](),
    )
    for name, entry in here.items():
        row = row_by_name[name]
        first, later = _merge(arrivals[row.id], entry.arrivals)
        new += [(row.id, arrival) for arrival in first]
        changed_arrivals += [(row.id, arrival) for arrival in later]
        if fresh := [*first, *later]:
            row = row._replace(logical_ms=max(row.logical_ms, entry.logical_ms))
            changes.append(Change(row, entry.follower, arrivals[row.id], fresh, is_by_hand=entry.is_by_hand))
    rounds.insert_arrivals(session, new)
    rounds.write_arrivals(session, changed_arrivals)
    decide(session, changes, now_ms=now_ms)


def _entries(
    outcomes: Iterable[Outcome], followers: Iterable[tuple[int, FollowerRow]], now_ms: Millis
) -> dict[RoundName, _Entry]:
    """Return the rounds by name; those since the last one still have the empty key."""
    by_predecessor = defaultdict[int, list[tuple[FollowerRow, RunsAfter]]](list)
    for predecessor_id, row in followers:
        if (rule := parse_runs_after(row.runs_after)) is not None:
            by_predecessor[predecessor_id].append((row, rule))
    entries: dict[RoundName, _Entry] = {}
    for outcome in outcomes:
        for row, rule in by_predecessor[outcome.job_id]:
            if not _belongs(outcome, rule):
                continue
            key = round_key(
                rule.round, outcome.logical_ms, zone=row.time_zone or zone_name(), chain=outcome.chain
            )
            chain = outcome.chain if in_chain(outcome.chain) else None
            entry = entries.setdefault((row.id, key), _Entry(row, rule, outcome.logical_ms, chain))
            entry.logical_ms = max(entry.logical_ms, outcome.logical_ms)
            entry.arrivals.append(_arrival_of(outcome, rule, now_ms))
            entry.is_by_hand |= outcome.is_by_hand
    return entries


def _belongs(outcome: Outcome, rule: RunsAfter) -> bool:
    if outcome.chain == NONE_FOLLOWS:
        return False
    return outcome.chain != FOR_NO_TIME or rule.round is not RoundKind.LOGICAL_TIME


def _arrival_of(run: Outcome, rule: RunsAfter, now_ms: Millis) -> RoundArrival:
    outcome = run.outcome
    if run.is_replaced:
        # The newer run has a logical time of its own, and is not in the chain.
        is_left_out = rule.round is RoundKind.LOGICAL_TIME or in_chain(run.chain)
        outcome = ArrivalOutcome.NOT_RUN if is_left_out else ArrivalOutcome.RETRYING
    return RoundArrival(run.job_id, run.shard, run.total, outcome, now_ms, run.log_id, run.reason)


def _merge(
    arrivals: list[RoundArrival], new: Iterable[RoundArrival]
) -> tuple[list[RoundArrival], list[RoundArrival]]:
    """Add to what has arrived in a round; return the first of predecessors and shards, and later ones."""
    by_shard = {(arrival.predecessor_id, arrival.shard): arrival for arrival in arrivals}
    first: dict[tuple[int, int], RoundArrival] = {}
    later: dict[tuple[int, int], RoundArrival] = {}
    for arrival in new:
        place = arrival.predecessor_id, arrival.shard
        former = by_shard.get(place)
        if supersedes(arrival, former):
            is_first = former is None or place in first
            by_shard[place] = (first if is_first else later)[place] = arrival
    arrivals[:] = by_shard.values()
    return list(first.values()), list(later.values())


def _with_names(session: Session, entries: Mapping[RoundName, _Entry]) -> dict[RoundName, _Entry]:
    """Give the rounds since the last one their keys.

    A success decides the last round anew, if that was not run and no later one has begun.
    """
    since = {name[0] for name, entry in entries.items() if entry.is_since_last}
    if not since:
        return dict(entries)
    last = rounds.find_last_decided(session, since)
    later = rounds.find_ids(session, {(job_id, since_key(row.id)) for job_id, row in last.items()})
    by_name: dict[RoundName, _Entry] = {}
    for (job_id, key), entry in entries.items():
        if entry.is_since_last:
            key = _since(last.get(job_id), later, job_id, has_success=entry.has_success)
        by_name[job_id, key] = entry
    return by_name


def _since(
    last: LastDecided | None, later: Mapping[RoundName, int], job_id: int, *, has_success: bool
) -> str:
    if last is None:
        return since_key(0)
    key = since_key(last.id)
    is_anew = has_success and (job_id, key) not in later and may_reopen(last.state, last.reason)
    return last.round_key if is_anew else key


def _lock(session: Session, entries: Mapping[RoundName, _Entry], now_ms: Millis) -> dict[RoundName, RoundRow]:
    """Lock these rounds; those that do not exist are opened, but for those of chains."""
    is_looked_at = looks_ahead()

    def new_row(name: RoundName) -> bulk.Row | None:
        entry = entries[name]
        if entry.chain is not None:
            return None
        wait_ms = _wait_ms(entry)
        return new_round(name, entry.logical_ms, opened_ms=now_ms, wait_ms=wait_ms, is_looked_at=is_looked_at)

    return lock_rounds(session, entries, new_row)


def _wait_ms(entry: _Entry) -> Millis:
    """Return how long a round waits that an arrival opens; of a job with a schedule its instant says."""
    return LONGEST_MS if is_gate(entry.follower, entry.chain) else entry.rule.wait_ms


def _find_later(
    session: Session, entries: Mapping[RoundName, _Entry], row_by_name: Mapping[RoundName, RoundRow]
) -> dict[RoundName, _Entry]:
    """Return what belongs to the next round, as the one since the last was decided since it was looked up."""
    decided_rows = {
        name: row
        for name, row in row_by_name.items()
        if entries[name].is_since_last and row.state != RoundState.OPEN
    }
    if not decided_rows:
        return {}
    later = rounds.find_ids(session, {(row.job_id, since_key(row.id)) for row in decided_rows.values()})
    later_entries = {}
    for name, row in decided_rows.items():
        next_name = row.job_id, since_key(row.id)
        reopens = entries[name].has_success and may_reopen(row.state, row.reason) and next_name not in later
        if not reopens:
            later_entries[next_name] = entries[name]
    return later_entries
