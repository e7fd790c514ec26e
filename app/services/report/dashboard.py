"""Dashboard data, limited to the groups a user may view."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import DAY_MS, SECOND_MS, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.enums import NodeKind
from app.domain.report.troubles import Facts, Finding, Trouble, troubles_of
from app.models.base import local_datetime
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import NODE_DEAD_MS, SKEW_MAX_MS, Node
from app.services.accounts import weak_passwords
from app.services.alarms.coverage import count_unmailed
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.services.code.ownership import drifted_ids, newest_states
from app.services.report.attention import Attention, find_attention, find_visible_names
from app.settings.config import Config
from app.store.executors import listing as group_lists
from app.store.jobs.scheduling import JobName
from app.store.limits import usage
from app.store.nodes import nodes as node_store
from app.store.pickers import overview
from app.store.runs import day_counts, reporting
from app.store.runs import recent as recent_runs
from app.store.runs.day_counts import DayCount

#: rows of running runs, and of jobs that start next
RUNNING, UPCOMING = 5, 6
#: where counting of runs that wait for a limit stops
WAITING_MAX = 10_000
#: starts within it come next; the very next one is shown in any case
UPCOMING_WITHIN_MS: Millis = 7 * DAY_MS
#: age up to which failures are mentioned though no job is failing
FAILED_WITHIN_MS: Millis = DAY_MS
#: how long it may be shown which jobs differed from their code
DRIFT_KEPT_MS: Millis = 15 * SECOND_MS
_drift_cache = AnswerCache[frozenset[int]](DRIFT_KEPT_MS)
_open_runs = AnswerCache[list[overview.OpenRun]](LATELY_MS)


@dataclass(frozen=True, slots=True)
class RunningRun:
    """A running run and its job; None if the job was deleted or is not visible to the reader."""

    log: JobLog
    job: JobName | None
    may_kill: bool


@dataclass(frozen=True, slots=True)
class NodeState:
    """Node: a console or workers process and its last heartbeat."""

    node: Node
    alive: bool
    last_seen_ms: Millis


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes, for the reader."""

    #: whether a scheduler scans
    is_scheduling: bool
    #: whether workers with a right clock are alive but do not scan; and the last scan, 0: none
    is_stuck: bool
    scanned_ms: Millis
    #: whether a scheduler is paused because its clock is wrong
    is_skewed: bool
    #: nodes with a wrong clock, and all of the last day; for administrators only
    skewed_nodes: list[Node]
    states: list[NodeState]


@dataclass(frozen=True, slots=True)
class Board:
    """Dashboard data except the charts."""

    groups: dict[int, Group]
    jobs: int
    enabled: int
    #: distinct instances online
    addresses: int
    nodes: Nodes
    #: what is wrong, the most severe first
    findings: list[Finding]
    facts: Facts
    attention: Attention
    #: whether runs failed in the last day, if no job is failing
    has_failed: bool
    #: all running and unresolved runs, and the longest running ones
    open_runs: list[overview.OpenRun]
    running: list[RunningRun]
    running_count: int
    #: runs that wait for a limit, at most WAITING_MAX
    waiting_count: int
    upcoming: list[Job]

    @property
    def is_late(self) -> bool:
        """Whether runs are late."""
        return any(finding.trouble is Trouble.LATE for finding in self.findings)

    @property
    def needs(self) -> int:
        """Number of things that need attention, listed or not; muted jobs do not."""
        attention, facts = self.attention, self.facts
        executors = len(attention.offline) + len(attention.drained_groups)
        others = (
            attention.incident_count
            + attention.unresolved_count
            + len(attention.channels)
            + bool(facts.unmailed_count)
        )
        return attention.rows + executors + others + self.is_late


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


def board(session: Session, actor: Actor, config: Config, *, now_ms: Millis) -> Board:
    """Return the dashboard data."""
    group_ids = actor.group_ids(Right.VIEW)
    groups = group_lists.find_visible(session, group_ids)
    jobs, on_count = overview.count_jobs(session, group_ids)
    open_runs = _open_runs.get(group_ids, lambda: overview.find_open_runs(session, group_ids))
    attention = find_attention(session, actor, groups, open_runs, now_ms=now_ms)
    nodes = _nodes(session, actor, now_ms=now_ms)
    facts = _facts(session, actor, config, groups, attention, nodes, now_ms=now_ms)
    upcoming = overview.find_upcoming(session, group_ids, limit=UPCOMING)
    since_ms, soon_ms = now_ms - FAILED_WITHIN_MS, now_ms + UPCOMING_WITHIN_MS
    return Board(
        groups={group.id: group for group in groups},
        jobs=jobs,
        enabled=on_count,
        addresses=len({address for group in groups for address in group.addresses}),
        nodes=nodes,
        findings=troubles_of(facts, now_ms=now_ms),
        facts=facts,
        attention=attention,
        has_failed=not facts.failing
        and bool(recent_runs.find_failed(session, group_ids, since_ms=since_ms, limit=1)),
        open_runs=open_runs,
        running=_running(session, actor, open_runs, now_ms=now_ms),
        running_count=sum(overview.is_running(run, now_ms=now_ms) for run in open_runs),
        waiting_count=usage.count_waiting_of(session, group_ids, limit=WAITING_MAX),
        upcoming=[job for job in upcoming if job.trigger_next_time <= soon_ms] or upcoming[:1],
    )


def chart(session: Session, actor: Actor, *, from_ms: Millis, to_ms: Millis) -> Chart:
    """Return counts per day between two instants, ascending; days without runs are omitted."""
    group_ids = actor.group_ids(Right.VIEW)
    if group_ids is None:
        return Chart(day_counts.day_counts(session, from_ms=from_ms, to_ms=to_ms))
    late = reporting.find_uncounted_days(session, from_ms=from_ms, to_ms=to_ms, limit=1)
    late_day = local_datetime(late[0]).date().isoformat() if late else ""
    days = day_counts.day_counts_of_groups(
        session, group_ids, from_ms=late[0] + 1 if late else from_ms, to_ms=to_ms
    )
    return Chart(days, late_day)


def _facts(
    session: Session,
    actor: Actor,
    config: Config,
    groups: Sequence[Group],
    attention: Attention,
    nodes: Nodes,
    *,
    now_ms: Millis,
) -> Facts:
    """Return the facts; what a single reader cannot change is for administrators only."""
    late, oldest_late_ms = overview.oldest_waiting_ms(session, actor.group_ids(Right.VIEW), now_ms=now_ms)
    with_instances = sum(bool(group.addresses) for group in groups)
    is_scheduler = [node.kind == NodeKind.WORKERS for node in nodes.skewed_nodes]
    drift_ids = _drift_cache.get(None, lambda: drifted_ids(newest_states(session)))
    return Facts(
        is_scheduling=nodes.is_scheduling,
        is_stuck=nodes.is_stuck,
        scheduler_clocks=sum(is_scheduler) or int(nodes.is_skewed),
        console_clocks=len(is_scheduler) - sum(is_scheduler),
        offline=len(attention.offline),
        drained_count=len(attention.drained_groups),
        online=with_instances - len(attention.drained_groups),
        failing=attention.failing_count,
        incidents=attention.incident_count,
        unresolved_count=attention.unresolved_count,
        late=late,
        oldest_late_ms=oldest_late_ms,
        broken_channels=len(attention.channels),
        unmailed_count=count_unmailed(session, config, actor=actor),
        weak_passwords=weak_passwords.count(session) if actor.is_admin else 0,
        drift_count=len(find_visible_names(session, actor, drift_ids)) if drift_ids else 0,
    )


def _running(
    session: Session, actor: Actor, open_runs: Sequence[overview.OpenRun], *, now_ms: Millis
) -> list[RunningRun]:
    runs = overview.find_running(session, open_runs, now_ms=now_ms, limit=RUNNING)
    names = find_visible_names(session, actor, {run.job_id for run in runs})
    return [
        RunningRun(run, names.get(run.job_id), may_kill=actor.may(run.job_group, Right.OPERATE))
        for run in runs
    ]


def _nodes(session: Session, actor: Actor, *, now_ms: Millis) -> Nodes:
    nodes = node_store.find_nodes(session, seen_after_ms=now_ms - DAY_MS)
    skewed_nodes = [node for node in nodes if _is_skewed(node, now_ms)]
    is_scheduling = node_store.is_scheduling(session, now_ms=now_ms)
    is_stuck = not is_scheduling and any(_is_fit(node, now_ms) for node in nodes)
    return Nodes(
        is_scheduling,
        is_stuck,
        node_store.last_scan_ms(session, now_ms=now_ms) if is_stuck else 0,
        is_skewed=any(node.kind == NodeKind.WORKERS for node in skewed_nodes),
        skewed_nodes=skewed_nodes if actor.is_admin else [],
        states=[_node_state(node, now_ms) for node in nodes] if actor.is_admin else [],
    )


def _node_state(node: Node, now_ms: Millis) -> NodeState:
    return NodeState(node, alive=node.is_alive(now_ms), last_seen_ms=node.last_seen_ms(now_ms))


def _is_skewed(node: Node, now_ms: Millis) -> bool:
    """Whether the clock of a live node is wrong: workers are paused, a console plans for wrong times."""
    return abs(node.skew_ms) > SKEW_MAX_MS and node.last_seen_ms(now_ms) >= now_ms - 4 * NODE_DEAD_MS


def _is_fit(node: Node, now_ms: Millis) -> bool:
    """Whether a node is of workers that should scan: alive, by a right clock."""
    return node.kind == NodeKind.WORKERS and node.is_alive(now_ms) and not _is_skewed(node, now_ms)
