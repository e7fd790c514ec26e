"""Trends: a week that is not over against the week before."""

import pytest

from app.domain.report.trends import Counts, days_since_first_run, success_rate, trend_of

STEADY = [Counts(success=90, failed=10)] * 7


@pytest.mark.parametrize(
    ("today", "share", "change"),
    [(Counts(90, 10), 1, 0), (Counts(45, 5), 0.5, 0), (Counts(), 0, 0), (Counts(100, 35), 0.35, 100 / 6.35)],
)
def test_a_day_that_is_not_over_is_compared_with_a_part_of_one(
    today: Counts, share: float, change: float
) -> None:
    trend = trend_of([*STEADY, *STEADY[:6], today], share_of_today=share)
    assert trend.runs_change == pytest.approx(change)


def test_the_success_rate_is_compared_in_points() -> None:
    trend = trend_of([*STEADY, *[Counts(success=80, failed=20, running=3)] * 7], share_of_today=1)
    assert (trend.runs, trend.failed, trend.success_rate) == (721, 140, 80)
    assert trend.rate_change == pytest.approx(-10)


@pytest.mark.parametrize(
    "days", [[], STEADY, [*[Counts()] * 7, *STEADY], [*[Counts()] * 3, *STEADY[3:], *STEADY]]
)
def test_without_the_week_before_nothing_is_compared(days: list[Counts]) -> None:
    trend = trend_of(days, share_of_today=1)
    assert (trend.runs_change, trend.rate_change) == (None, None)


@pytest.mark.parametrize(
    ("counts", "rate"),
    [(Counts(), None), (Counts(running=4), None), (Counts(success=5), 100), (Counts(99_999, 1), 99.9)],
)
def test_a_rate_is_not_rounded_to_all(counts: Counts, rate: float | None) -> None:
    assert success_rate([counts]) == rate


@pytest.mark.parametrize(
    ("days", "number"),
    [
        ([], 7),
        ([Counts()] * 14, 7),
        ([*[Counts()] * 13, Counts(running=1)], 1),
        ([*[Counts()] * 11, Counts(failed=1), Counts(), Counts()], 3),
        ([Counts(success=1), *[Counts()] * 13], 7),
        ([Counts(success=1)] * 2, 2),
    ],
)
def test_days_before_the_first_run_are_not_counted(days: list[Counts], number: int) -> None:
    assert days_since_first_run(days) == number
