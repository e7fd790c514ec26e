"""Run statistics: success rate and durations of the last runs of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from app.clock import Millis


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended; ``duration_ms`` None: it never started."""

    succeeded: bool
    duration_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of some runs; durations are of those that started, None if none did."""

    runs: int
    failed: int
    median_ms: Millis | None
    p95_ms: Millis | None

    @property
    def success_percent(self) -> float:
        """Percentage of the runs that succeeded, rounded down to one decimal, so that 100 means all."""
        return (self.runs - self.failed) * 1000 // self.runs / 10 if self.runs else 0.0


def ended_duration_ms(duration_ms: Millis | None, *, trigger_ms: Millis, handle_ms: Millis | None) -> Millis:
    """Return how long a run with a result took; in whole seconds if its milliseconds are not stored.

    They are not in rows that were adopted, and in those of a Java admin.
    """
    return duration_ms if duration_ms is not None else max(0, (handle_ms or trigger_ms) - trigger_ms)


def statistics_of(runs: Sequence[EndedRun]) -> Statistics:
    """Return the statistics of these runs."""
    durations = sorted(run.duration_ms for run in runs if run.duration_ms is not None)
    return Statistics(
        len(runs),
        sum(not run.succeeded for run in runs),
        percentile(durations, 50),
        percentile(durations, 95),
    )


def percentile(ascending: Sequence[Millis], percent: int) -> Millis | None:
    """Return the smallest value that at least ``percent`` percent do not exceed; None without values."""
    return ascending[max(0, ceil(len(ascending) * percent / 100) - 1)] if ascending else None
