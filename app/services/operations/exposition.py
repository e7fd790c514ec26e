"""Exposition: the metrics of this host's processes and the state of the installation, for Prometheus.

What processes count (``app.runtime.metrics``) has the label ``process``: console, scheduler, archiver or
monitor of this host. The state is read from the database at each request; every console shows the same.
"""

import logging
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.faults import fault_log
from app.domain.completeness.days import day_of
from app.domain.enums import APART, NodeKind, TriggerStatus
from app.runtime import metrics
from app.services.backups.last_backup import find_last
from app.services.operations.bounded_reads import BoundedReader
from app.settings.config import Config
from app.store.archive.health import find_health
from app.store.backfills.records import count_active
from app.store.calendars import current_book
from app.store.completeness import days
from app.store.nodes import health, nodes
from app.store.promises import listing as promise_lists
from app.store.promises.incidents import LIVE
from app.store.promises.listing import IncidentFilter
from app.store.rounds.listing import count_open
from executor_client.wire.version import VERSION

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

logger = logging.getLogger(__name__)

#: executor groups with a label of their own, the oldest ones; all others share one
GROUPS_MAX = 50
OTHER = "other"
#: ``process`` of the process that serves the metrics
CONSOLE = "console"


class Exposition:
    """Renders metrics; keeps the names of groups, for counters and times without a database."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._names: dict[int, str] = {}
        self._reader = BoundedReader()

    def render(self, *, now_ms: Millis) -> bytes:
        """Return all metrics in Prometheus' text format."""
        # Imported here, because the package costs 0.1 s of each start.
        from prometheus_client.exposition import generate_latest

        state = list(self._state(now_ms))
        snapshots = metrics.read_snapshots(self._config.home, now_ms=now_ms)
        snapshots = {CONSOLE: {"pid": "self", "metrics": metrics.snapshot()}, **snapshots}
        families = [*state, *self._counters(snapshots), *_of_processes(snapshots)]
        return generate_latest(_FamilyRegistry(families))

    def _state(self, now_ms: Millis) -> "Iterator[Metric]":
        """Yield the state of the installation; without a database only its absence."""
        start_s = time.monotonic()
        try:
            families = self._reader.read(partial(self._read, now_ms=now_ms))
        except DBAPIError as exc:
            fault_log.write(logger, "state not read for metrics", exc)
            families = []
        yield _gauge("xxl_job_build_info", "Version of the console.", {(VERSION,): 1}, "version")
        yield _gauge("xxl_job_database_up", "Whether the database answers.", {(): float(bool(families))})
        yield from families
        yield from _host(self._config, now_ms)
        took_s = time.monotonic() - start_s
        yield _gauge("xxl_job_state_read_seconds", "Reading the state for these metrics.", {(): took_s})

    def _read(self, session: Session, now_ms: Millis) -> "list[Metric]":
        names = health.find_group_names(session, limit=GROUPS_MAX)
        # A counter keeps its label; otherwise it would fall when another group is deleted.
        self._names = dict(islice({**self._names, **names}.items(), GROUPS_MAX))
        return [
            *_nodes(session, now_ms),
            *_queues(session, now_ms),
            *_groups(session, names, now_ms),
            _unexplained_gauge(session, now_ms, self._config.time_zone),
            *_promises(session),
            *_archive(session, now_ms),
        ]

    def _name(self, group: str) -> str:
        return self._names.get(int(group), OTHER)

    def _counters(self, snapshots: Mapping[str, Any]) -> "Iterator[Metric]":
        """Yield what the processes have counted; a name they do not share is of another version."""
        for name, metric in metrics.METRICS.items():
            of_processes = {
                process: values
                for process, snapshot in snapshots.items()
                if (values := snapshot["metrics"].get(name))
            }
            if isinstance(metric, metrics.Histogram):
                yield _histogram(metric, of_processes)
            else:
                yield self._counter(metric, of_processes)

    def _counter(self, metric: metrics.Counter, of_processes: Mapping[str, Any]) -> "Metric":
        from prometheus_client.core import CounterMetricFamily

        totals: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for process, values in of_processes.items():
            for labels, value in values:
                names = [
                    self._name(text) if label == "group" else text
                    for label, text in zip(metric.labels, labels, strict=True)
                ]
                totals[(*names, process)] += value
        family = CounterMetricFamily(metric.name, metric.text, labels=[*metric.labels, "process"])
        for key, value in totals.items():
            family.add_metric(key, value)
        return family


class _FamilyRegistry:
    """Registry of the families of one request."""

    def __init__(self, families: "list[Metric]") -> None:
        self._families = families

    def collect(self) -> "list[Metric]":
        return self._families


def _nodes(session: Session, now_ms: Millis) -> "Iterator[Metric]":
    live = nodes.find_live(session, now_ms=now_ms)
    alive: dict[tuple[str, ...], float] = {
        (kind.value,): sum(node.kind == kind for node in live) for kind in NodeKind
    }
    yield _gauge("xxl_job_nodes_alive", "Nodes with a recent heartbeat.", alive, "kind")
    scanned_ms = nodes.last_scan_ms(session, now_ms=now_ms)
    age_s = max(now_ms - scanned_ms, 0) / 1000 if scanned_ms else float("inf")
    text = "Time since a scheduler of any node looked for due jobs; +Inf: never."
    yield _gauge("xxl_job_last_scan_age_seconds", text, {(): age_s})


def _unexplained_gauge(session: Session, now_ms: Millis, zone: str) -> "Metric":
    yesterday = day_of(now_ms, ZoneInfo(zone)) - timedelta(days=1)
    count = days.count_unexplained(session, from_day=yesterday.isoformat())
    text = "Instants of schedules since yesterday that have neither a run nor a reason."
    return _gauge("xxl_job_unexplained_instants", text, {(): count})


def _promises(session: Session) -> "Iterator[Metric]":
    text = "Promises of jobs, by whether they were kept the last time."
    states: dict[tuple[str, ...], float] = dict(promise_lists.count_kinds(session).items())
    yield _gauge("xxl_job_promises", text, states, "promise", "state")
    counts = promise_lists.count_live(session, IncidentFilter(), None, most=None)
    live: dict[tuple[str, ...], float] = {(state,): counts.get(state, 0) for state in LIVE}
    yield _gauge("xxl_job_incidents", "Incidents that have not ended.", live, "state")


def _archive(session: Session, now_ms: Millis) -> "Iterator[Metric]":
    state = find_health(session, now_ms=now_ms)
    age_s = (now_ms - state.oldest_due_ms) / 1000 if state.oldest_due_ms else 0
    text = "Logs of runs that are to be fetched by now."
    yield _gauge("xxl_job_log_archive_waiting", text, {(): state.waiting})
    text = "How late the oldest of these is."
    yield _gauge("xxl_job_log_archive_waiting_age_seconds", text, {(): age_s})
    text = "Logs that the store did not take at the last attempt."
    yield _gauge("xxl_job_log_archive_not_taken", text, {(): state.not_taken})
    yield _gauge("xxl_job_log_archive_stored_bytes", "Size of all archived logs.", {(): state.stored})


def _host(config: Config, now_ms: Millis) -> "Iterator[Metric]":
    """Yield the space left on this host, and the age of the last backup made on it, if there is one."""
    free = shutil.disk_usage(config.home).free
    text = "Bytes that are free on the disk of the home folder."
    yield _gauge("xxl_job_home_free_bytes", text, {(): free})
    last = find_last(config)
    if last is not None:
        age_s = max(now_ms - last.made_ms, 0) / 1000
        text = "Time since the last backup on this host."
        yield _gauge("xxl_job_last_backup_age_seconds", text, {(): age_s})


def _queues(session: Session, now_ms: Millis) -> "Iterator[Metric]":
    jobs = health.count_jobs(session)
    switches: dict[tuple[str, ...], float] = {
        ("on",): jobs.get(TriggerStatus.RUNNING, 0),
        ("off",): jobs.get(TriggerStatus.STOPPED, 0),
    }
    yield _gauge("xxl_job_jobs", "Jobs, by whether their schedule is on.", switches, "schedule")
    queues = health.find_queues(session, now_ms=now_ms)
    age_s = 0.0 if queues.oldest_due_ms is None else (now_ms - queues.oldest_due_ms) / 1000
    yield _gauge("xxl_job_fires_waiting", "Fires that are due and were not claimed yet.", {(): queues.due})
    yield _gauge("xxl_job_fires_waiting_age_seconds", "How late the oldest of them is.", {(): age_s})
    states: dict[tuple[str, ...], float] = {
        (state.value.lower(),): count for state, count in queues.by_state.items()
    }
    waiting_counts: dict[tuple[str, ...], float] = {
        (state.value.lower(),): states.pop((state.value.lower(),)) for state in APART
    }
    yield _gauge("xxl_job_fires_in_progress", "Claimed fires without a result.", states, "state")
    of_limits = (
        "Fires that wait for a limit, round or blackout, and those of unresolved runs that hold slots."
    )
    yield _gauge("xxl_job_fires_limited", of_limits, waiting_counts, "state")
    text = "Rounds of jobs that run after others and that are not complete."
    yield _gauge("xxl_job_rounds_open", text, {(): count_open(session)})
    backfills: dict[tuple[str, ...], float] = {
        (state,): count for state, count in count_active(session).items()
    }
    yield _gauge("xxl_job_backfills", "Backfills that have not ended.", backfills, "state")
    blackouts = current_book.refresh(session).blackouts
    is_on = sum(blackout.window_at(now_ms) is not None for blackout in blackouts)
    yield _gauge("xxl_job_blackouts_on", "Blackouts that are on.", {(): is_on})
    waiting, failed = health.count_alarms(session, now_ms=now_ms)
    alarms: dict[tuple[str, ...], float] = {("waiting",): waiting, ("failed",): failed}
    text = "Alarms to be delivered, and those not delivered in the last hour."
    yield _gauge("xxl_job_alarms", text, alarms, "state")


def _groups(session: Session, names: Mapping[int, str], now_ms: Millis) -> "Iterator[Metric]":
    online: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for group_id, count in health.count_instances(session, now_ms=now_ms).items():
        online[names.get(group_id, OTHER),] += count
    text = "Instances of automatic executor groups with a recent heartbeat."
    yield _gauge("xxl_job_instances_online", text, online, "group")
    misses = _by_name(names, health.count_missed(session, now_ms=now_ms))
    yield _gauge("xxl_job_fires_missed", "Instants missed in the last hour.", misses, "group")
    unknown_counts = _by_name(names, health.count_unresolved(session))
    text = "Recent runs whose fate could not be found out."
    yield _gauge("xxl_job_runs_unresolved", text, unknown_counts, "group")


def _by_name(names: Mapping[int, str], values: Mapping[int, int]) -> dict[tuple[str, ...], float]:
    """Return values by name of the group; every known group has one."""
    value_by_label: dict[tuple[str, ...], float] = {(name,): 0 for name in names.values()}
    for group_id, value in values.items():
        key = (names.get(group_id, OTHER),)
        value_by_label[key] = value_by_label.get(key, 0) + value
    return value_by_label


def _gauge(name: str, text: str, values: Mapping[tuple[str, ...], float], *labels: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histogram(metric: metrics.Histogram, of_processes: Mapping[str, Any]) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(metric.name, metric.text, labels=["process"])
    for process, values in of_processes.items():
        if any(values["counts"]):
            bounds = [*map(str, metric.bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(values["counts"]), strict=True))
            family.add_metric([process], buckets, values["sum"])
    return family


def _of_processes(snapshots: Mapping[str, Any]) -> "Iterator[Metric]":
    """Yield memory, CPU and open files of each process, where the system has /proc."""
    from prometheus_client import ProcessCollector

    families: dict[str, Metric] = {}
    for process, snapshot in snapshots.items():
        collector = ProcessCollector(pid=partial(str, snapshot["pid"]), registry=None)
        for family in collector.collect():
            samples = [sample._replace(labels={"process": process}) for sample in family.samples]
            family.samples = []
            families.setdefault(family.name, family).samples += samples
    yield from families.values()
