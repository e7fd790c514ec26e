"""Unclaimed fires: due, and not claimed although neither busy instances nor a backlog explain it."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.engine import claims_paused
from app.domain.enums import NodeKind
from app.store.executors import groups
from app.store.fires import overdue_fires
from app.store.nodes import nodes

#: a fire that is due for this long should have been claimed; its third claim is 3 s after the first
UNCLAIMED_MS: Millis = 30 * SECOND_MS
#: more unclaimed fires than this are a backlog
BACKLOG = 1_000
#: while more runs than this are being sent, the lanes of the scheduler may be full
SENDING_MAX = 50


def oldest_unexplained(session: Session, *, now_ms: Millis) -> tuple[int, Millis | None]:
    """Return how many fires are due for UNCLAIMED_MS and unexplained, and when the oldest was due.

    None if no scheduler has run for as long.
    """
    fires = overdue_fires.find_unclaimed(session, due_before_ms=now_ms - UNCLAIMED_MS, limit=BACKLOG + 1)
    if not fires or not _has_scheduler(session, now_ms) or claims_paused(session, now_ms=now_ms):
        return 0, None
    of_groups = unexplained_groups(session, {fire.job_group for fire in fires}, now_ms=now_ms)
    due_ms = [fire.due_ms for fire in fires if fire.job_group in of_groups]
    return len(due_ms), min(due_ms, default=None)


def unexplained_groups(session: Session, group_ids: Collection[int], *, now_ms: Millis) -> set[int]:
    """Return those of the groups to whose addresses no run is being sent, so that none is at capacity."""
    waiting = overdue_fires.find_unclaimed(session, due_before_ms=now_ms, limit=BACKLOG + 1)
    sending = overdue_fires.find_sending(session, limit=SENDING_MAX + 1)
    if len(waiting) > BACKLOG or len(sending) > SENDING_MAX:
        return set()
    busy_groups, addresses = {run.job_group for run in sending}, {run.address for run in sending}
    idle = groups.find_groups(session, set(group_ids) - busy_groups)
    return {group_id for group_id, group in idle.items() if addresses.isdisjoint(group.addresses)}


def _has_scheduler(session: Session, now_ms: Millis) -> bool:
    """Whether a scheduler scans, and workers have run long enough to have claimed what was due."""
    start_times = [
        node.started_ms for node in nodes.find_live(session, now_ms=now_ms) if node.kind == NodeKind.WORKERS
    ]
    is_settled = any(start_ms <= now_ms - UNCLAIMED_MS for start_ms in start_times)
    return is_settled and nodes.is_scheduling(session, now_ms=now_ms)
