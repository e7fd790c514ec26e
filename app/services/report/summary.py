"""Summary: key figures of the installation, limited to the groups a user may view."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.services.executors.instances import count_online
from app.services.report import dashboard
from app.services.report.reporting import midnight_ms
from app.settings.config import Config
from app.store.executors import listing as group_lists
from app.store.nodes import nodes as node_store
from app.store.pickers import overview
from app.store.runs.day_counts import DayCount


@dataclass(frozen=True, slots=True)
class Summary:
    """Numbers of an instant."""

    groups: int
    jobs: int
    #: jobs whose schedule is on
    enabled: int
    #: distinct instances with a recent heartbeat
    online: int
    #: fires that are due and have not been sent, and when the oldest was due
    waiting: int
    oldest_waiting_ms: Millis | None
    #: runs that have been claimed and have no result yet
    running: int
    #: runs of the local day, as last counted
    today: DayCount
    #: whether a scheduler scans
    scheduling: bool


def summarize(session: Session, actor: Actor, *, config: Config, now_ms: Millis) -> Summary:
    """Return the summary of now."""
    group_ids = actor.group_ids(Right.VIEW)
    groups = group_lists.find_visible(session, group_ids)
    jobs, on_count = overview.count_jobs(session, group_ids)
    waiting, oldest_ms = overview.oldest_waiting_ms(session, group_ids, now_ms=now_ms)
    start_ms = midnight_ms(now_ms, config.time_zone)
    days = dashboard.chart(session, actor, from_ms=start_ms, to_ms=now_ms).days
    return Summary(
        groups=len(groups),
        jobs=jobs,
        enabled=on_count,
        online=count_online(session, groups, now_ms=now_ms),
        waiting=waiting,
        oldest_waiting_ms=oldest_ms,
        running=overview.count_running(session, group_ids),
        today=days[-1] if days else DayCount("", 0, 0, 0),
        scheduling=node_store.is_scheduling(session, now_ms=now_ms),
    )
