"""Run statistics: success rate and durations of the last runs of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from app.clock import Millis

#: newest runs that are compared with those before them, of which there are at least so many
RECENT, COMPARED = 20, 10
#: percentage points below the usual success rate, and success rates, that are low and that are bad
LOW_POINTS, BAD_POINTS = 10, 20
LOW_PERCENT, BAD_PERCENT = 90, 50


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended; ``duration_ms`` None: it never started."""

    is_success: bool
    duration_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Norm:
    """Success rate of the newest runs of a job beside that of the runs before them."""

    runs: int
    percent: float
    usual_percent: float

    @property
    def level(self) -> str:
        """``bad`` or ``low`` far below what is usual, ``ok`` otherwise."""
        below = self.usual_percent - self.percent
        return "bad" if below >= BAD_POINTS else "low" if below >= LOW_POINTS else "ok"


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
        return _percent(self.runs - self.failed, self.runs)

    @property
    def level(self) -> str:
        """``bad`` if less than half of the runs succeeded, ``low`` if less than nine of ten, else ``ok``."""
        percent = self.success_percent
        return "bad" if percent < BAD_PERCENT else "low" if percent < LOW_PERCENT else "ok"


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
        sum(not run.is_success for run in runs),
        percentile(durations, 50),
        percentile(durations, 95),
    )


def norm_of(newest_first: Sequence[EndedRun]) -> Norm | None:
    """Compare the newest runs with those before them; None if those are too few."""
    recent, before = newest_first[:RECENT], newest_first[RECENT:]
    if len(before) < COMPARED:
        return None
    return Norm(
        len(recent),
        _percent(sum(run.is_success for run in recent), len(recent)),
        _percent(sum(run.is_success for run in before), len(before)),
    )


def _percent(part: int, whole: int) -> float:
    return part * 1000 // whole / 10 if whole else 0.0


def percentile(ascending: Sequence[Millis], percent: int) -> Millis | None:
    """Return the smallest value that at least ``percent`` percent do not exceed; None without values."""
    return ascending[max(0, ceil(len(ascending) * percent / 100) - 1)] if ascending else None
