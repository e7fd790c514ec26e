"""How the last runs of a job went, in figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from app.clock import Millis


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has its result; ``duration_ms`` None: it never began."""

    good: bool
    duration_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of some runs; the durations are of those that began, None where none did."""

    runs: int
    failed: int
    median_ms: Millis | None
    p95_ms: Millis | None

    @property
    def success_percent(self) -> float:
        """Share of the runs that succeeded, one decimal, rounded down: 100 means all of them."""
        return (self.runs - self.failed) * 1000 // self.runs / 10 if self.runs else 0.0


def statistics_of(ended: Sequence[Ended]) -> Statistics:
    """Return the figures of these runs."""
    durations = sorted(run.duration_ms for run in ended if run.duration_ms is not None)
    return Statistics(
        len(ended), sum(not run.good for run in ended), percentile(durations, 50), percentile(durations, 95)
    )


def percentile(ascending: Sequence[Millis], percent: int) -> Millis | None:
    """Return the smallest value that at least ``percent`` of the values do not exceed; None where there is none."""
    return ascending[max(0, ceil(len(ascending) * percent / 100) - 1)] if ascending else None
