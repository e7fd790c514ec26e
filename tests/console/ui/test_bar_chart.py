"""Bar chart: lines at round values, bars that fit any width."""

from collections.abc import Iterator

import pytest
from flask import Flask

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from app.console.ui.bar_chart import (
    COUNTS,
    DURATIONS,
    LEAST,
    LINES,
    Scale,
    Slot,
    bar_chart,
    short_number,
)


@pytest.fixture(autouse=True)
def request_of_a_reader(app: Flask) -> Iterator[None]:
    with app.test_request_context("/"):
        yield


@pytest.mark.parametrize(
    ("scale", "highest", "labels"),
    [
        (COUNTS, 1, ["1"]),
        (COUNTS, 4, ["1", "2", "3", "4"]),
        (COUNTS, 7, ["2", "4", "6"]),
        (COUNTS, 1_900, ["500", "1,000", "1,500"]),
        (COUNTS, 4_000_000, ["1,000,000", "2,000,000", "3,000,000", "4,000,000"]),
        (DURATIONS, 3, ["1 ms", "2 ms", "3 ms"]),
        (DURATIONS, 50 * SECOND_MS, ["15 s", "30 s", "45 s"]),
        (DURATIONS, 110 * MINUTE_MS, ["30 min", "1 h", "90 min"]),
        (DURATIONS, 20 * HOUR_MS, ["6 h", "12 h", "18 h"]),
        (DURATIONS, 3 * DAY_MS, ["24 h", "48 h", "72 h"]),
    ],
)
def test_lines_stand_at_round_values(scale: Scale, highest: int, labels: list[str]) -> None:
    lines = bar_chart([Slot({"success": highest}, "")], [], scale).lines
    assert [line.label for line in lines] == labels
    assert len(lines) <= LINES


def test_few_bars_keep_their_width_and_a_value_of_zero_is_seen() -> None:
    chart = bar_chart([Slot({"danger": 0}, "")], [], DURATIONS, places=30)
    assert (chart.slot_width, chart.top) == ("3.33%", 0)
    assert chart.bars[0].parts[0].height == LEAST


def test_counts_have_at_most_four_characters() -> None:
    texts = {
        0: "0",
        7: "7",
        999: "999",
        1_000: "1.0k",
        9_949: "9.9k",
        9_950: "10k",
        36_400: "36k",
        3_600_000: "3.6M",
        36_000_000: "36M",
    }
    assert {value: short_number(value) for value in texts} == texts
