"""Waiting fires: due but not sent, with the reason where it is known."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.web.language import _
from app.domain.enums import NodeKind
from app.services.operations.unclaimed_fires import unexplained_groups
from app.store.nodes import nodes as node_store
from app.store.pickers import overview
from app.store.pickers.overview import GroupIds, WaitingFire

#: limit of the list
FIRES_MAX = 10


@dataclass(frozen=True, slots=True)
class Waiting:
    """A waiting fire and the reason."""

    fire: WaitingFire
    reason: str


def waiting_fires(
    session: Session, group_ids: GroupIds, *, now_ms: Millis, job_id: int | None = None
) -> list[Waiting]:
    """Return the oldest waiting fires of these groups (None: all groups)."""
    fires = overview.find_waiting(session, group_ids, now_ms=now_ms, limit=FIRES_MAX, job_id=job_id)
    if not fires:
        return []
    if reason := missing_scheduler(session, now_ms=now_ms):
        return [Waiting(fire, reason) for fire in fires]
    idle = unexplained_groups(session, {fire.job_group for fire in fires}, now_ms=now_ms)
    return [Waiting(fire, _reason(is_idle=fire.job_group in idle)) for fire in fires]


def _reason(*, is_idle: bool) -> str:
    """Return why a fire waits though a scheduler scans; ``is_idle``: its instances are not at capacity."""
    if is_idle:
        return _("not claimed yet; if that lasts, see the log of the workers")
    return _("its instances are at capacity, or the scheduler is behind")


def missing_scheduler(session: Session, *, now_ms: Millis) -> str:
    """Return that no scheduler is running or scanning; empty if one is."""
    if node_store.is_scheduling(session, now_ms=now_ms):
        return ""
    if node_store.count_live(session, NodeKind.WORKERS, now_ms=now_ms):
        return _("no scheduler is scanning; see the log of the workers")
    return _("no scheduler is running; start the workers: xxl-job-workers")
