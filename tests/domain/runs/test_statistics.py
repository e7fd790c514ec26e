"""Statistics of the last runs."""

from app.domain.runs.statistics import EndedRun, Norm, norm_of, percentile, statistics_of
from tests.support.truth_table import truth_table


@truth_table(
    "values, percent, expected",
    [
        ([], 50, None),
        ([7], 50, 7),
        ([7], 95, 7),
        ([1, 2], 50, 1),
        ([1, 2, 3], 50, 2),
        (list(range(1, 101)), 95, 95),
        ([1, 9], 95, 9),
    ],
)
def test_a_percentile_is_a_measured_value(values: list[int], percent: int, expected: int | None) -> None:
    assert percentile(values, percent) == expected


def test_runs_that_never_started_count_as_failures_without_a_duration() -> None:
    figures = statistics_of([EndedRun(True, 3_000), EndedRun(False, 1_000), EndedRun(False, None)])
    assert (figures.runs, figures.failed, figures.median_ms, figures.p95_ms) == (3, 2, 1_000, 3_000)
    assert figures.success_percent == 33.3


def test_only_a_series_without_failures_is_a_hundred_percent() -> None:
    runs = [EndedRun(True, 1)] * 2_999 + [EndedRun(False, 1)]
    assert statistics_of(runs).success_percent == 99.9
    assert statistics_of([]).success_percent == 0.0


@truth_table(
    "failed, level",
    [(0, "ok"), (10, "ok"), (11, "low"), (50, "low"), (51, "bad"), (95, "bad")],
)
def test_the_success_rate_of_many_failures_is_low_or_bad(failed: int, level: str) -> None:
    runs = [EndedRun(False, 1)] * failed + [EndedRun(True, 1)] * (100 - failed)
    assert statistics_of(runs).level == level


@truth_table(
    "recent, before, norm",
    [
        ("+" * 20, "+" * 9, None),
        ("+" * 20, "+" * 10, Norm(20, 100.0, 100.0)),
        ("---" + "+" * 17, "+" * 19 + "-", Norm(20, 85.0, 95.0)),
        ("-" * 20, "-" * 80, Norm(20, 0.0, 0.0)),
    ],
)
def test_the_newest_runs_are_compared_with_those_before(recent: str, before: str, norm: Norm | None) -> None:
    assert norm_of([EndedRun(sign == "+", 1) for sign in recent + before]) == norm


@truth_table(
    "percent, usual, level",
    [(100, 90, "ok"), (90, 99.9, "ok"), (90, 100, "low"), (70, 90, "bad"), (0, 5, "ok")],
)
def test_runs_that_fail_more_than_usual_are_low_or_bad(percent: float, usual: float, level: str) -> None:
    assert Norm(20, percent, usual).level == level
