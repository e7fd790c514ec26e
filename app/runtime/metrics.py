"""Metrics of this process, counted in memory; the console serves them at ``/metrics``.

A count costs a third of a microsecond. The workers write theirs to a file of the home folder every few
seconds, where the console of the host reads them: a restarted process begins again at zero in a series of
its own, which Prometheus understands, and nothing of a dead one is left behind.

Labels have few values. ``group`` is the id of an executor group; the console shows its name.
"""

import json
import os
import threading
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.clock import Millis

#: folder below the home, with one file per process: ``scheduler.json``
FOLDER = "metrics"
#: period in which a process writes its file; a file three times as old is that of a dead process
WRITE_PERIOD_MS: Millis = 5_000
#: upper bounds of the buckets, in seconds
FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
LAG = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
LONG = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)

#: guards all values of the process
_lock = threading.Lock()
#: name -> metric, in the order in which they are shown
METRICS: "dict[str, Counter | Histogram]" = {}


class Counter:
    """Number of events since the process started, by label values."""

    def __init__(self, name: str, text: str, *labels: str) -> None:
        self.name, self.text, self.labels = name, text, labels
        self.values: dict[tuple[str, ...], float] = {}
        METRICS[name] = self

    def add(self, *labels: str, count: float = 1) -> None:
        """Count events; ``labels`` are the values in the order of the declaration."""
        with _lock:
            self.values[labels] = self.values.get(labels, 0) + count


class Histogram:
    """Distribution of seconds since the process started."""

    labels: tuple[str, ...] = ()

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name, self.text, self.bounds = name, text, bounds
        #: how many values are up to each bound and above the one before; the last: above all
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        METRICS[name] = self

    def observe(self, *seconds: float) -> None:
        """Add durations; negative ones, of a clock that was set, count as 0."""
        with _lock:
            for duration_s in seconds:
                self.counts[bisect_left(self.bounds, duration_s)] += 1
                self.sum += max(duration_s, 0.0)


FIRES_DUE = Counter("xxl_job_fires_due_total", "Scheduled instants that a scan has made fires of.", "group")
FIRES_SKIPPED = Counter(
    "xxl_job_fires_skipped_total", "Scheduled instants that were skipped, by reason.", "group", "reason"
)
FIRES_SENT = Counter(
    "xxl_job_fires_sent_total", "Requests to executors to run a job, by outcome.", "group", "outcome"
)
FIRES_LATE = Counter(
    "xxl_job_fires_late_total", "Fires first sent more than a second after their instant.", "group"
)
RUNS_ENDED = Counter(
    "xxl_job_runs_ended_total", "Runs that ended: success, failed or unresolved.", "group", "outcome"
)
FIRE_LAG = Histogram("xxl_job_fire_lag_seconds", "From the instant of a fire to its first request.", LAG)
CLAIM_DURATION = Histogram(
    "xxl_job_claim_duration_seconds", "Transactions that give fires to this node.", FAST
)
SEND_DURATION = Histogram(
    "xxl_job_send_duration_seconds", "Requests to executors to run a job, until the answer.", FAST
)
RUN_DURATION = Histogram("xxl_job_run_duration_seconds", "Runs, from their request to their result.", LONG)
CALLBACKS = Counter(
    "xxl_job_callbacks_total", "Results reported by executors: stored, late, foreign or other_run.", "outcome"
)
CALLBACK_DURATION = Histogram(
    "xxl_job_callback_duration_seconds", "Storing the results of one request of an executor.", FAST
)
ALARMS_ENDED = Counter("xxl_job_alarms_ended_total", "Alarms that were settled, by outcome.", "outcome")
ARCHIVED_BYTES = Counter("xxl_job_log_archive_bytes_total", "Text of logs that was archived, in bytes.")
LOG_PULLS = Counter(
    "xxl_job_log_pulls_total", "Requests for logs: answered, silent, or failed as the store did.", "outcome"
)
STATEMENT_DURATION = Histogram(
    "xxl_job_database_statement_duration_seconds", "Statements on the database, without commits.", FAST
)


def reset() -> None:
    """Begin at zero, in a process that was forked."""
    for metric in METRICS.values():
        if isinstance(metric, Histogram):
            metric.counts, metric.sum = [0] * len(metric.counts), 0.0
        else:
            metric.values.clear()


def snapshot() -> dict[str, Any]:
    """Return the values of this process as JSON data: name -> values by labels, or counts and sum."""
    with _lock:
        return {
            name: {"counts": [*metric.counts], "sum": metric.sum}
            if isinstance(metric, Histogram)
            else [[list(labels), value] for labels, value in metric.values.items()]
            for name, metric in METRICS.items()
        }


def write_snapshot(home: Path, process: str) -> None:
    """Replace the file of this process; an error is ignored, since the next one follows in seconds."""
    folder = home / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        draft = folder / f".{process}.{os.getpid()}"
        draft.write_text(json.dumps({"pid": os.getpid(), "metrics": snapshot()}), encoding="utf-8")
        draft.replace(folder / f"{process}.json")
    except OSError:
        return


def read_snapshots(home: Path, *, now_ms: Millis) -> dict[str, dict[str, Any]]:
    """Return process -> its last snapshot with its ``pid``; without processes that no longer write."""
    snapshots: dict[str, dict[str, Any]] = {}
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            if now_ms - path.stat().st_mtime * 1000 <= 3 * WRITE_PERIOD_MS:
                snapshots[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # The file was just replaced, or is not ours.
            continue
    return snapshots
