"""Runs of a trigger: those it became, and what still waits for a scheduler."""

from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.runs.trigger_keys import Trigger
from app.domain.text.texts import N_
from app.store.runs import neighbours

NO_RUN = N_("There is no such run; it may have been withdrawn or deleted")


@dataclass(frozen=True, slots=True)
class TriggerRuns:
    """Runs of a trigger; none, no due time and no skip: its runs were deleted, or it was withdrawn."""

    #: ascending; several of a broadcast
    log_ids: tuple[int, ...]
    #: when what still waits for a scheduler is due; None: nothing waits
    due_ms: Millis | None
    #: what that stands for; None: nothing waits
    logical_ms: Millis | None = field(default=None, compare=False)
    #: reason of its skip, because it was not to wait for a limit; empty: it was not skipped
    skipped: str = ""
    #: whether what waits does so for a limit or the end of a blackout
    is_limited: bool = field(default=False, compare=False)
    #: chain and round of what waits
    chain: int | None = field(default=None, compare=False)
    round_id: int | None = field(default=None, compare=False)

    @property
    def is_waiting(self) -> bool:
        """Whether there is no run yet."""
        return not self.log_ids and self.due_ms is not None


def find_trigger_runs(session: Session, trigger: Trigger) -> TriggerRuns:
    """Return the runs of a trigger: a fire first, then the runs with its number, which the claim writes."""
    waiting = neighbours.find_waiting(session, trigger)
    log_ids = neighbours.find_triggered(session, trigger)
    if not waiting and not log_ids:
        waiting = neighbours.find_waiting(session, trigger, is_moved=True)
    if not waiting and not log_ids and (skip := neighbours.find_skip(session, trigger)) is not None:
        return TriggerRuns((), None, skipped=skip.reason)
    if not waiting:
        return TriggerRuns(tuple(log_ids), None)
    first = waiting[0]
    return TriggerRuns(
        tuple(log_ids),
        first.due_ms,
        first.logical_ms,
        is_limited=first.is_limited,
        chain=first.chain,
        round_id=first.round_id,
    )
