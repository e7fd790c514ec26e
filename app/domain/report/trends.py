"""Trends: a week of runs compared with the week before."""

from collections.abc import Sequence
from typing import NamedTuple

#: days of a week, and days that are read for its trend
WEEK, READ_DAYS = 7, 14
#: days without runs by which a week looks as if the installation began in it; a weekend is shorter
FIRST_DAYS = 3


class Counts(NamedTuple):
    """Runs of one day by result."""

    success: int = 0
    failed: int = 0
    running: int = 0

    @property
    def total(self) -> int:
        """All runs."""
        return self.success + self.failed + self.running


class Trend(NamedTuple):
    """Figures of the last week with their changes; None: unknown, or there is nothing to compare with."""

    runs: int
    failed: int
    #: percentage of the runs with a result that succeeded
    success_rate: float | None
    #: percent more runs than in the week before
    runs_change: float | None
    #: percentage points by which the success rate is higher than in the week before
    rate_change: float | None


def trend_of(days: Sequence[Counts], *, share_of_today: float) -> Trend:
    """Return the figures of the last seven of the days, oldest first; the last one is today.

    Today is not over: of the same day a week ago as great a share counts, 0 to 1. Without all 14 days, or if
    there were no runs in the first FIRST_DAYS of them, there are no changes.
    """
    week, before = days[-WEEK:], days[-READ_DAYS:-WEEK]
    rate = success_rate(week)
    runs = sum(day.total for day in week)
    failed = sum(day.failed for day in week)
    if len(before) < WEEK or not any(day.total for day in before[:FIRST_DAYS]):
        return Trend(runs, failed, rate, None, None)
    rate_before = success_rate(before)
    usual = sum(day.total for day in before) - (1 - share_of_today) * before[-1].total
    return Trend(
        runs,
        failed,
        rate,
        100 * (runs - usual) / usual if usual else None,
        rate - rate_before if rate is not None and rate_before is not None else None,
    )


def days_since_first_run(days: Sequence[Counts]) -> int:
    """Return how many of the last seven days, oldest first, are not before the first run; 1 is today alone.

    All seven without any run.
    """
    first = next((place for place, day in enumerate(days) if day.total), None)
    return WEEK if first is None else min(WEEK, len(days) - first)


def success_rate(days: Sequence[Counts]) -> float | None:
    """Return the percentage of the runs with a result that succeeded; None without one. 100 means all."""
    success, failed = sum(day.success for day in days), sum(day.failed for day in days)
    if not success + failed:
        return None
    rate = 100 * success / (success + failed)
    return min(99.9, rate) if failed else rate
