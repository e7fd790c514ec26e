"""Limits of planned runs: how far ahead, and how many of one job."""

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput
from app.store.fires import planned as planned_fires

#: how far ahead a run can be planned
AHEAD_DAYS = 366
#: planned runs of one job
PLANNED_MAX = 1_000


def check_plan(session: Session, job_id: int, due_ms: Millis, *, now_ms: Millis, force: bool = False) -> None:
    """Raise InvalidInput for an instant that cannot be planned, Conflict if the job has too many planned.

    A run that was forced would have its slots from now on.
    """
    if force:
        raise InvalidInput(
            "force", N_("Only a run that is due now can be forced; leave out force or the time")
        )
    if not now_ms < due_ms <= now_ms + AHEAD_DAYS * DAY_MS:
        raise InvalidInput("at", N_("The run must be due in the next %(days)s days", days=AHEAD_DAYS))
    if planned_fires.count_ahead(session, job_id, now_ms=now_ms) >= PLANNED_MAX:
        raise Conflict(
            N_("This job has %(n)s planned runs already; withdraw some of them first", n=PLANNED_MAX)
        )
