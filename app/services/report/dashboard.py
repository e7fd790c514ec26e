"""Dashboard data, limited to the groups a user may view."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.enums import NodeKind
from app.domain.executors.draining import leave_out
from app.models.base import local_datetime
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import NODE_DEAD_MS, SKEW_MAX_MS, Node
from app.services.accounts import weak_passwords
from app.services.alarms import muted_alarms, mutes
from app.services.alarms.mutes import Muted
from app.services.runs import reasons
from app.store.executors import drains, last_seen
from app.store.executors import listing as group_lists
from app.store.jobs import scheduling as job_store
from app.store.jobs.scheduling import JobName
from app.store.nodes import nodes as node_store
from app.store.pickers import overview
from app.store.runs import day_counts, reporting
from app.store.runs import recent as recent_runs
from app.store.runs.day_counts import DayCount

#: rows per short list
SHOWN = 8
#: newest failed runs searched for failing jobs
LOOKED_AT = 200
#: maximum age of failures shown
FAILED_WITHIN_MS: Millis = DAY_MS


@dataclass(frozen=True, slots=True)
class Run:
    """A run and its job; None if the job was deleted or is not visible to the reader."""

    log: JobLog | recent_runs.Run
    job: JobName | None
    #: why it failed, in English; empty if it did not
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A job whose last run failed, and its number of recent failures."""

    job: JobName
    last: recent_runs.Run
    failures: int
    #: end of the mute; None if not muted
    muted_until_ms: Millis | None
    #: why the last run failed, in English
    reason: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """Node: a console or workers process and its last heartbeat."""

    node: Node
    alive: bool
    last_seen_ms: Millis


@dataclass(frozen=True, slots=True)
class Offline:
    """Group without instances, and when the last one was seen; None if unknown."""

    group: Group
    last_seen_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Board:
    """Dashboard data except the chart."""

    groups: int
    jobs: int
    enabled: int
    #: distinct instances online
    addresses: int
    #: whether a scheduler scans
    scheduling: bool
    #: whether workers with a right clock are alive but do not scan; and the last scan, 0: none
    is_stuck: bool
    scanned_ms: Millis
    failing: list[FailingJob]
    failed: list[Run]
    unresolved: list[Run]
    #: waiting fires, and when the oldest was due
    waiting: int
    oldest_waiting_ms: Millis | None
    #: whether a scheduler is paused because its clock is wrong
    is_skewed: bool
    #: nodes with a wrong clock, and all live nodes; for administrators only
    skewed: list[Node]
    nodes: list[NodeState]
    #: all running and unresolved runs
    open_runs: list[overview.OpenRun]
    running: list[Run]
    upcoming: list[Job]
    offline: list[Offline]
    #: groups whose instances are all drained, so that every run fails
    drained: list[Group]
    #: users with a weak password that scripts still log in with; for administrators only, else 0
    weak_passwords: int
    #: active mutes; not a problem in themselves
    muted: list[Muted]

    @property
    def troubles(self) -> int:
        """Number of kinds of problems."""
        executors = self.offline or self.drained
        return sum(
            map(
                bool,
                (
                    not self.scheduling,
                    self.is_skewed or self.skewed,
                    self.failing,
                    self.unresolved,
                    self.waiting,
                    executors,
                    self.weak_passwords,
                ),
            )
        )


@dataclass(frozen=True, slots=True)
class Chart:
    """Runs by day."""

    days: list[DayCount]
    #: the last day, such as ``2024-05-01``, that is not counted by groups yet: it and those before are left
    #: out
    uncounted: str = ""

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
    """Return the dashboard data."""
    group_ids = actor.group_ids(Right.VIEW)
    groups = group_lists.find_visible(session, group_ids)
    jobs, enabled = overview.count_jobs(session, group_ids)
    failed = recent_runs.find_failed(session, group_ids, since_ms=now_ms - FAILED_WITHIN_MS, limit=LOOKED_AT)
    failing, counts = _failing(session, failed)
    open_runs = overview.find_open_runs(session, group_ids)
    unresolved = overview.find_unresolved(session, open_runs, limit=SHOWN)
    running = overview.find_running(session, open_runs, now_ms=now_ms, limit=SHOWN)
    runs_listed: list[JobLog | recent_runs.Run] = [*failing, *failed[:SHOWN], *unresolved, *running]
    names = _visible_names(session, {log.job_id for log in runs_listed}, actor)
    failing = [log for log in failing if log.job_id in names][:SHOWN]
    why = reasons.find_reasons(session, [*failing, *failed[:SHOWN]])
    muted = muted_alarms.find_mutes(session, [names[log.job_id] for log in failing], now_ms=now_ms)
    ends = {job_id: mute.until_ms for job_id, mute in muted.items()}
    nodes = node_store.find_nodes(session, seen_after_ms=now_ms - DAY_MS)
    skewed = [node for node in nodes if _is_skewed(node, now_ms)]
    scheduling = node_store.is_scheduling(session, now_ms=now_ms)
    is_stuck = not scheduling and any(_is_fit(node, now_ms) for node in nodes)
    waiting, oldest_ms = overview.oldest_waiting_ms(session, group_ids, now_ms=now_ms)
    return Board(
        groups=len(groups),
        jobs=jobs,
        enabled=enabled,
        addresses=len({address for group in groups for address in group.addresses}),
        scheduling=scheduling,
        is_stuck=is_stuck,
        scanned_ms=node_store.last_scan_ms(session, now_ms=now_ms) if is_stuck else 0,
        failing=[
            FailingJob(names[log.job_id], log, counts[log.job_id], ends.get(log.job_id), why[log.id])
            for log in failing
        ],
        failed=[Run(log, names.get(log.job_id), why[log.id]) for log in failed[:SHOWN]],
        unresolved=[Run(log, names.get(log.job_id)) for log in unresolved],
        waiting=waiting,
        oldest_waiting_ms=oldest_ms,
        is_skewed=any(node.kind == NodeKind.WORKERS for node in skewed),
        skewed=skewed if actor.is_admin else [],
        nodes=[_node_state(node, now_ms) for node in nodes] if actor.is_admin else [],
        open_runs=open_runs,
        running=[Run(log, names.get(log.job_id)) for log in running],
        upcoming=overview.find_upcoming(session, group_ids, limit=SHOWN),
        offline=_offline(session, groups),
        drained=_all_drained(session, groups)[:SHOWN],
        weak_passwords=weak_passwords.count(session) if actor.is_admin else 0,
        muted=mutes.list_muted(session, actor, now_ms=now_ms),
    )


def chart(session: Session, actor: Actor, *, from_ms: Millis, to_ms: Millis) -> Chart:
    """Return counts per day between two instants, ascending; days without runs are omitted."""
    group_ids = actor.group_ids(Right.VIEW)
    if group_ids is None:
        return Chart(day_counts.day_counts(session, from_ms=from_ms, to_ms=to_ms))
    late = reporting.find_uncounted_days(session, from_ms=from_ms, to_ms=to_ms, limit=1)
    uncounted = local_datetime(late[0]).date().isoformat() if late else ""
    days = day_counts.day_counts_of_groups(
        session, group_ids, from_ms=late[0] + 1 if late else from_ms, to_ms=to_ms
    )
    return Chart(days, uncounted)


def _failing(session: Session, failed: list[recent_runs.Run]) -> tuple[list[recent_runs.Run], Counter[int]]:
    """Return the last runs of the jobs whose last run failed, most failures first, and failures by job."""
    counts = Counter(log.job_id for log in failed)
    newest = overview.find_newest_ids(session, counts)
    last = [log for log in failed if log.id in newest]
    return sorted(last, key=lambda log: (-counts[log.job_id], log.job_id)), counts


def _offline(session: Session, groups: list[Group]) -> list[Offline]:
    """Return the groups without instances.

    One that never had any counts only if it has a schedule that is on.
    """
    empty = [group for group in groups if not group.addresses]
    last = last_seen.find_last(session, {group.app_name for group in empty}) if empty else {}
    awaited = overview.find_groups_with_schedules(session, [group.id for group in empty]) if empty else set()
    without_instances = [group for group in empty if group.id in awaited or group.app_name in last]
    return [Offline(group, last.get(group.app_name)) for group in without_instances[:SHOWN]]


def _all_drained(session: Session, groups: list[Group]) -> list[Group]:
    """Return the groups that have instances, all of them drained."""
    rows = drains.find_drained(session, [group.id for group in groups])
    return [
        group
        for group in groups
        if group.id in rows and group.addresses and not leave_out(group.addresses, rows[group.id]).open
    ]


def _node_state(node: Node, now_ms: Millis) -> NodeState:
    return NodeState(node, alive=node.is_alive(now_ms), last_seen_ms=node.last_seen_ms(now_ms))


def _is_skewed(node: Node, now_ms: Millis) -> bool:
    """Whether the clock of a live node is wrong: workers are paused, a console plans for wrong times."""
    return abs(node.skew_ms) > SKEW_MAX_MS and node.last_seen_ms(now_ms) >= now_ms - 4 * NODE_DEAD_MS


def _is_fit(node: Node, now_ms: Millis) -> bool:
    """Whether a node is of workers that should scan: alive, by a right clock."""
    return node.kind == NodeKind.WORKERS and node.is_alive(now_ms) and not _is_skewed(node, now_ms)


def _visible_names(session: Session, job_ids: Collection[int], actor: Actor) -> dict[int, JobName]:
    """Return the names of the jobs visible to the actor; a job may have been moved since it ran."""
    names = job_store.find_names(session, job_ids)
    return {job_id: name for job_id, name in names.items() if actor.may(name.job_group, Right.VIEW)}
