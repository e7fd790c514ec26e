"""Charts of the dashboard: bars of whole steps, a ring whose parts add up."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from app.console.report.charts import AREA, LINES, TOP, Charts, charts_of
from app.services.report.dashboard import Chart
from app.store.runs.day_counts import DayCount

ZONE = ZoneInfo("Asia/Shanghai")


@pytest.fixture(autouse=True)
def request_of_a_reader(app: Flask) -> Iterator[None]:
    with app.test_request_context("/"):
        yield


def drawn(*days: tuple[int, int, int]) -> Charts:
    charts = charts_of(
        Chart([DayCount(f"2026-01-{day:02d}", *counts) for day, counts in enumerate(days, 1)]), ZONE
    )
    assert charts is not None
    return charts


def test_without_runs_there_is_no_chart() -> None:
    assert charts_of(Chart([DayCount("2026-01-01", 0, 0, 0)]), ZONE) is None
    assert charts_of(Chart([]), ZONE) is None


def test_a_bar_stacks_the_results_of_its_day() -> None:
    bar = drawn((80, 20, 0), (0, 0, 0)).bars[0]
    assert [(part.result, part.height) for part in bar.parts] == [
        ("success", AREA * 0.8),
        ("failed", AREA * 0.2),
    ]
    assert bar.parts[-1].y == TOP
    assert (bar.failed, bar.label) == ("20", "2026-01-01 · 80 succeeded · 20 failed")
    assert bar.href.endswith("from=2026-01-01T00:00:00&to=2026-01-01T23:59:59")


def test_a_day_without_runs_is_no_link() -> None:
    bar = drawn((1, 0, 0), (0, 0, 0)).bars[1]
    assert (bar.parts, bar.href, bar.failed) == ([], "", "")


def test_one_failure_among_many_runs_is_seen() -> None:
    assert drawn((100_000, 1, 0)).bars[0].parts[1].height == 2


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (1, ["1"]),
        (4, ["1", "2", "3", "4"]),
        (7, ["2", "4", "6"]),
        (1_900, ["500", "1,000", "1,500"]),
        (4_000_000, ["1,000,000", "2,000,000", "3,000,000", "4,000,000"]),
    ],
)
def test_lines_stand_at_round_numbers(highest: int, labels: list[str]) -> None:
    lines = drawn((highest, 0, 0)).lines
    assert [line.label for line in lines] == labels
    assert len(lines) <= LINES


def test_the_ring_has_the_share_of_each_result() -> None:
    charts = drawn((50, 20, 0), (20, 0, 10))
    assert [(each.result, each.count, each.percent, each.offset) for each in charts.slices] == [
        ("success", 70, "70.0%", "-0.00"),
        ("failed", 20, "20.0%", "-70.00"),
        ("running", 10, "10.0%", "-90.00"),
    ]


@pytest.mark.parametrize(
    ("counts", "rate"),
    [((70, 20, 10), "77.8%"), ((9_999, 1, 0), "99.9%"), ((3, 0, 1), "100.0%"), ((0, 0, 5), "")],
)
def test_the_rate_is_of_finished_runs_and_whole_only_without_failures(
    counts: tuple[int, int, int], rate: str
) -> None:
    assert drawn(counts).rate == rate


def test_a_long_range_names_some_days_and_counts_no_failures() -> None:
    bars = drawn(*[(5, 1, 0)] * 28).bars
    assert [bar.day for bar in bars if bar.day] == [f"01-{day:02d}" for day in range(4, 29, 4)]
    assert bars[0].failed == "1"
