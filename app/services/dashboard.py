"""What the dashboard shows, limited to the groups a user may see."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.permissions import Actor, Right
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.store import group_lists, overview
from app.store import jobs as job_store
from app.store.overview import DayCount

#: rows of each of the short lists
SHOWN = 8
#: failures older than this are not shown
FAILED_WITHIN_MS: Millis = DAY_MS


@dataclass(frozen=True, slots=True)
class Run:
    """A run and its job; None where the job was deleted."""

    log: JobLog
    job: Job | None


@dataclass(frozen=True, slots=True)
class Board:
    """The dashboard but for its chart."""

    groups: int
    jobs: int
    enabled: int
    #: executor machines online, each counted once
    addresses: int
    scheduling: bool
    failed: list[Run]
    running: list[Run]
    upcoming: list[Job]
    offline: list[Group]


@dataclass(frozen=True, slots=True)
class Chart:
    """Runs by day."""

    days: list[DayCount]

    @property
    def success(self) -> int:
        """Runs that succeeded."""
        return sum(day.success for day in self.days)

    @property
    def failed(self) -> int:
        """Runs that failed."""
        return sum(day.failed for day in self.days)

    @property
    def running(self) -> int:
        """Runs without a result."""
        return sum(day.running for day in self.days)

    @property
    def total(self) -> int:
        """All runs."""
        return self.success + self.failed + self.running


def board(session: Session, actor: Actor, *, now_ms: Millis) -> Board:
    """Return what the dashboard shows."""
    group_ids = actor.group_ids(Right.VIEW)
    groups = group_lists.find_visible(session, group_ids)
    jobs, enabled = overview.count_jobs(session, group_ids)
    return Board(
        groups=len(groups),
        jobs=jobs,
        enabled=enabled,
        addresses=len({address for group in groups for address in group.addresses}),
        scheduling=overview.is_scheduling(session, now_ms=now_ms),
        failed=_runs(session, overview.find_failed(session, group_ids, since_ms=now_ms - FAILED_WITHIN_MS, limit=SHOWN)),
        running=_runs(session, overview.find_running(session, group_ids, now_ms=now_ms, limit=SHOWN)),
        upcoming=overview.find_upcoming(session, group_ids, limit=SHOWN),
        offline=[group for group in groups if not group.addresses][:SHOWN],
    )


def chart(session: Session, actor: Actor, *, from_ms: Millis, to_ms: Millis) -> Chart:
    """Return the runs by day between two instants, ascending; days without a run are not in it."""
    group_ids = actor.group_ids(Right.VIEW)
    if group_ids is None:
        return Chart(overview.day_counts(session, from_ms=from_ms, to_ms=to_ms))
    return Chart(overview.day_counts_of_groups(session, group_ids, from_ms=from_ms, to_ms=to_ms))


def _runs(session: Session, logs: list[JobLog]) -> list[Run]:
    jobs = job_store.find_jobs(session, {log.job_id for log in logs})
    return [Run(log, jobs.get(log.job_id)) for log in logs]
