"""Built-in views of the run list: how many runs each has."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.store.runs import view_counts
from app.store.runs.view_counts import ViewCounts

__all__ = ["COUNT_MAX", "ViewCounts"]

#: counting stops here: each failure that is counted is a row to read
COUNT_MAX = 200


def count_run_views(session: Session, *, actor: Actor, from_ms: Millis, to_ms: Millis) -> ViewCounts:
    """Return how many of the runs that the actor may see each view has; ``from_ms`` to ``to_ms`` is today."""
    group_ids = actor.group_ids(Right.VIEW)
    return view_counts.count_views(session, group_ids, from_ms=from_ms, to_ms=to_ms, limit=COUNT_MAX)
