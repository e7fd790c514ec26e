"""Runs of chains and rounds: whether a chain has ended, and how; runs that a round misses are run again."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import TriggerType
from app.domain.rounds.evaluation import BAD
from app.domain.rounds.kinds import RoundReason, RoundState
from app.domain.runs.outcome import state_of, worst_state
from app.domain.runs.trigger_keys import parse_number
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.pipeline.rounds.decisions import may_reopen
from app.services.auditing import audit
from app.services.jobs.triggers import QueuedRun
from app.services.runs.run_actions import retry_run
from app.services.runs.run_lookup import look_until_ended
from app.store.base import locks
from app.store.jobs.listing import find_groups_of
from app.store.rounds import listing, missing, rounds
from app.store.rounds.missing import MissingRun
from app.store.rounds.rounds import RoundRow
from app.store.runs import chains
from app.store.runs.chains import ChainRun

MISSING = N_("There is no such chain; its runs may have been deleted")
NO_ROUND = N_("There is no such round; it may have been deleted")
OVER = N_("The round is over: runs of it cannot change it any more")
NOTHING = N_("The round misses no run that could be run again")


@dataclass(frozen=True, slots=True)
class ChainView:
    """A chain: a run by hand with all that follows it."""

    #: number of the trigger that asked for it
    chain: int
    #: waiting or running while anything of it is left; then the worst state of its runs
    state: str
    has_ended: bool
    #: runs that are on their way
    on_their_way: int
    open_rounds: int
    not_run_rounds: int
    #: state -> number of runs that have it and that the actor may see
    runs: Mapping[str, int]


def chain_of(text: str) -> int:
    """Return the number in the text of a chain, or in the id of its trigger; raises InvalidInput."""
    number = parse_number(text)
    if number is None:
        raise InvalidInput("chain", N_("This is neither a chain nor the id of a trigger"))
    return number


def find_run_ids(session: Session, chain: int) -> list[int]:
    """Return the ids of the runs of a chain."""
    return [run.id for run in chains.find_runs(session, chain)]


def show_chain(session: Session, chain: int, *, actor: Actor) -> ChainView:
    """Return a chain of which the actor may see something; raises NotFound."""
    # Rounds first: what a round starts later is a fire by then.
    rows = chains.find_rounds(session, chain)
    fires = chains.find_fire_groups(session, chain)
    runs = chains.find_runs(session, chain)
    groups = find_groups_of(session, {row.job_id for row in rows})
    visible = [run for run in runs if actor.may(run.job_group, Right.VIEW)]
    if not visible and not any(actor.may(group_id, Right.VIEW) for group_id in (*fires, *groups.values())):
        raise NotFound(MISSING)
    open_rounds = sum(row.state == RoundState.OPEN for row in rows)
    not_run = sum(row.state == RoundState.NOT_RUN and row.reason != RoundReason.EXCUSED for row in rows)
    has_ended = not open_rounds and not fires
    return ChainView(
        chain,
        _result(runs, not_run) if has_ended else "running" if runs else "waiting",
        has_ended,
        len(fires),
        open_rounds,
        not_run,
        dict(Counter(map(_state, visible))),
    )


def wait_for_chain(chain: int, *, actor: Actor, timeout_s: float) -> ChainView:
    """Return a chain once it has ended, or as it is after ``timeout_s`` or when the console stops.

    Each look has its own transaction.
    """
    return look_until_ended(partial(show_chain, chain=chain, actor=actor), timeout_s=timeout_s)


def _state(run: ChainRun) -> str:
    return state_of(run.trigger_code, run.handle_code, run.killed)


def _result(runs: Sequence[ChainRun], not_run: int) -> str:
    """Return the worst state of the runs that count; a round that was not run counts as one not started."""
    states = {_state(run) for run in _countable(runs)}
    return worst_state(states | {"not_started"} if not_run else states)


def _countable(runs: Sequence[ChainRun]) -> Iterable[ChainRun]:
    """Return the runs without those that were repeated: by a retry, or by hand later."""
    sources = {run.source_log_id for run in runs if run.trigger_type == TriggerType.RETRY}
    by_hand: dict[tuple[int, str | None], int] = {}
    for run in runs:
        if run.trigger_type == TriggerType.MANUAL:
            place = run.job_id, run.executor_sharding_param
            by_hand[place] = max(by_hand.get(place, 0), run.id)
    for run in runs:
        if run.id not in sources and run.id >= by_hand.get((run.job_id, run.executor_sharding_param), 0):
            yield run


def run_missing(session: Session, round_id: int, *, actor: Actor, now_ms: Millis) -> list[QueuedRun]:
    """Run again all runs because of which a round is not complete; their round and chain stay.

    Needs the right to operate the jobs of all of them. Those that are being run again already are left out.
    Raises NotFound, PermissionDenied, and Conflict if there is nothing to run.
    """
    row = next(iter(listing.find_rounds(session, [round_id])), None)
    runs = _missing(session, row, actor)
    results = [retry_run(session, str(run.id), actor=actor, now_ms=now_ms) for run in runs]
    target = ("job", row.job_id if row is not None else 0)
    changes = {"round": round_id, "runs": [run.id for run in runs]}
    audit.record(session, "job.run_missing", actor=actor, now_ms=now_ms, target=target, changes=changes)
    return results


def find_missing(session: Session, round_id: int, *, actor: Actor) -> list[MissingRun]:
    """Return the runs that ``run_missing`` would run again; raises what that raises."""
    return _missing(session, next(iter(listing.find_rounds(session, [round_id])), None), actor)


def _missing(session: Session, row: RoundRow | None, actor: Actor) -> list[MissingRun]:
    group_id = find_groups_of(session, [row.job_id]).get(row.job_id) if row is not None else None
    if row is None or group_id is None:
        raise NotFound(NO_ROUND)
    require_right(actor, group_id, Right.VIEW, missing=NO_ROUND)
    if row.state != RoundState.OPEN and not may_reopen(row.state, row.reason):
        raise Conflict(OVER)
    log_ids = {
        arrival.log_id
        for arrival in rounds.find_arrivals(session, [row.id])[row.id]
        if arrival.outcome in BAD and arrival.log_id is not None
    }
    runs = missing.find_missing(session, log_ids)
    if not all(actor.may(run.group_id, Right.OPERATE) for run in runs):
        raise PermissionDenied(N_("You have no permission to run all jobs whose runs are missing"))
    # Of two that ask at once the second one finds what the first one runs. Rounds are locked after jobs.
    locks.lock_groups_of(session, {run.job_id for run in runs})
    repeats = missing.find_repeated(session, {run.job_id for run in runs})
    left = [run for run in runs if run.id not in repeats]
    if not left:
        raise Conflict(NOTHING)
    return left
