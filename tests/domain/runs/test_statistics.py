"""Statistics of the last runs."""

from app.domain.runs.statistics import EndedRun, percentile, statistics_of
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
