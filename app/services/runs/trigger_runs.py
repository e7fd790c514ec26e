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
    """Runs of a trigger; neither runs nor a due time: its runs were deleted, or it was withdrawn."""

    #: ascending; several of a broadcast
    log_ids: tuple[int, ...]
    #: when what still waits for a scheduler is due; None: nothing waits
    due_ms: Millis | None
    #: what that stands for; None: nothing waits
    logical_ms: Millis | None = field(default=None, compare=False)

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
    if not waiting:
        return TriggerRuns(tuple(log_ids), None)
    return TriggerRuns(tuple(log_ids), waiting[0].due_ms, waiting[0].logical_ms)
