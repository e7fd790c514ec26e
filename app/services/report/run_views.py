"""Built-in views of the run list: how many runs each has."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.store.runs import view_counts

#: counting stops here
COUNT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class RunViews:
    """Numbers of runs of the built-in views; at COUNT_MAX there may be more."""

    failed: int
    not_started: int
    running: int

    @property
    def is_cut(self) -> bool:
        """Whether there may be more failures, of any kind, than were counted."""
        return self.failed >= COUNT_MAX

    @property
    def is_running_cut(self) -> bool:
        """Whether there may be more running runs than were counted."""
        return self.running >= COUNT_MAX


def count_run_views(session: Session, *, actor: Actor, from_ms: Millis, to_ms: Millis) -> RunViews:
    """Return how many of the runs that the actor may see each view has; ``from_ms`` to ``to_ms`` is today."""
    group_ids = actor.group_ids(Right.VIEW)
    failures = view_counts.count_failures(session, group_ids, from_ms=from_ms, to_ms=to_ms, limit=COUNT_MAX)
    running = view_counts.count_accepted(session, group_ids, limit=COUNT_MAX)
    return RunViews(failures.total, failures.not_started, running)
