"""Runs by day: bars of whole steps, the results of a day, and the failure rate."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from app.console.report.charts import days_chart, failure_rate
from app.console.ui.bar_chart import AREA, TOP, BarChart
from app.services.report.dashboard import Chart
from app.store.runs.day_counts import DayCount

ZONE = ZoneInfo("Asia/Shanghai")


@pytest.fixture(autouse=True)
def request_of_a_reader(app: Flask) -> Iterator[None]:
    with app.test_request_context("/"):
        yield


def drawn(*days: tuple[int, int, int]) -> BarChart:
    return days_chart(
        Chart([DayCount(f"2026-01-{day:02d}", *counts) for day, counts in enumerate(days, 1)]), ZONE
    )


def test_without_runs_the_axis_is_empty() -> None:
    chart = drawn((0, 0, 0), (0, 0, 0))
    assert (chart.top, chart.lines, chart.curve) == (0, [], None)
    assert [(bar.parts, bar.slot.tick) for bar in chart.bars] == [([], "01-01"), ([], "01-02")]
    assert drawn().bars == []


def test_a_bar_stacks_the_results_of_its_day() -> None:
    bar = drawn((80, 20, 0), (0, 0, 0)).bars[0]
    assert [(part.kind, part.value, part.height) for part in bar.parts] == [
        ("success", 80, AREA * 0.8),
        ("danger", 20, AREA * 0.2),
    ]
    assert bar.parts[-1].y == TOP
    assert bar.slot.label == "2026-01-01 · 80 succeeded · 20 failed · 20.0% failure rate"
    assert bar.slot.above == "100", "all runs, not only failures"
    assert bar.slot.href.endswith("from=2026-01-01T00:00:00&to=2026-01-01T23:59:59")


def test_a_day_without_runs_is_no_link() -> None:
    bar = drawn((1, 0, 0), (0, 0, 0)).bars[1]
    assert (bar.parts, bar.slot.href, bar.slot.above) == ([], "", "")


def test_one_failure_among_many_runs_is_seen() -> None:
    assert drawn((100_000, 1, 0)).bars[0].parts[1].height == 2


def test_the_legend_has_the_runs_of_each_result_and_the_failure_rate() -> None:
    chart = drawn((5_000, 20, 0), (20, 0, 10))
    assert [(meaning.kind, meaning.amount) for meaning in chart.legend] == [
        ("success", "5,020"),
        ("danger", "20"),
        ("info", "10"),
        ("rate", "0.4%"),
    ]
    assert [meaning.kind for meaning in drawn((1, 0, 0)).legend] == ["success", "danger", "info"]


def test_the_failure_rate_is_a_line_through_the_days_that_have_one() -> None:
    curve = drawn((96, 4, 0), (0, 0, 5), (10, 0, 0)).curve
    assert curve is not None
    assert [line.label for line in curve.lines] == ["2%", "4%"]
    assert [y for _x, y in curve.points] == [TOP, TOP + AREA]
    assert curve.segments == [(*curve.points[0], *curve.points[1])]
    assert drawn((1, 0, 0)).curve is None


@pytest.mark.parametrize(
    ("success", "failed", "rate"), [(70, 30, 30), (99_999, 1, 0.1), (3, 0, 0), (0, 5, 100), (0, 0, None)]
)
def test_the_rate_is_of_finished_runs_and_zero_only_without_failures(
    success: int, failed: int, rate: float | None
) -> None:
    assert failure_rate(success, failed) == rate


def test_a_long_range_names_some_days_and_shortens_numbers() -> None:
    chart = drawn(*[(12_345, 1, 0)] * 28)
    assert [bar.slot.tick for bar in chart.bars if bar.slot.tick] == [
        f"01-{day:02d}" for day in range(4, 29, 4)
    ]
    assert chart.bars[0].slot.above == "12k"
    assert chart.is_crowded
