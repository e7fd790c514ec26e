"""Progress of a backfill: what became of its instants, how many it starts, and when it has ended."""

from collections.abc import Iterable
from typing import NamedTuple

from app.domain.backfills.kinds import BackfillState, InstantState, OnFailure


class Decision(NamedTuple):
    """What a step of a backfill does."""

    state: BackfillState
    #: how many instants it may start
    start: int = 0
    #: whether the runs that no executor has yet are withdrawn, as are the instants that wait
    withdraws: bool = False


def decide(
    state: BackfillState,
    on_failure: OnFailure,
    *,
    max_running: int,
    running: int,
    has_waiting: bool,
    has_failed: bool,
) -> Decision:
    """Return what a step does.

    ``running``: instants whose runs have not ended; ``has_waiting``: instants are left to start;
    ``has_failed``: one has failed in the present attempt.
    """
    match state:
        case BackfillState.CANCELLING:
            end_state = BackfillState.CANCELLED if not running else state
            return Decision(end_state, withdraws=True)
        case BackfillState.RUNNING | BackfillState.STOPPING if has_failed and on_failure is OnFailure.STOP:
            return Decision(BackfillState.STOPPING if running else BackfillState.FAILED)
        case BackfillState.RUNNING | BackfillState.STOPPING | BackfillState.PAUSED:
            if not running and not has_waiting:
                # One that was paused before it saw the failure may be resumed as well.
                is_failure = has_failed and on_failure is OnFailure.STOP
                return Decision(BackfillState.FAILED if is_failure else BackfillState.DONE)
            if state is BackfillState.PAUSED:
                return Decision(state)
            return Decision(BackfillState.RUNNING, max(max_running - running, 0) if has_waiting else 0)
    return Decision(state)


def result_of(outcomes: Iterable[InstantState]) -> InstantState:
    """Return what became of an instant, from the ends of its runs: one, or each shard of a broadcast."""
    states = {*outcomes}
    for state in (InstantState.RUNNING, InstantState.FAILED, InstantState.SUCCEEDED):
        if state in states:
            return state
    return InstantState.WITHDRAWN
