"""Lines of benchmarks: what is kept of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.yardstick import YARDSTICK_MS, Yardstick, converted, keep


def test_a_line_takes_the_place_of_the_one_that_measured_the_same(tmp_path: Path) -> None:
    out = tmp_path / "new" / "sqlite.jsonl"
    rows = [("rate", None, 1), ("by_nodes", 1, 2), ("by_nodes", 2, 3), ("rate", None, 4), ("by_nodes", 1, 5)]
    for row, at, figure in rows:
        keep(out, json.dumps({"db": "sqlite", "row": row, "at": at, "figure": figure}))
    assert [json.loads(line)["figure"] for line in out.read_text().splitlines()] == [3, 4, 5]


@pytest.mark.parametrize(
    ("figure", "unit", "expected"),
    [
        (100, "1/s", [200]),
        ([4, 10], "ms", [2, 5]),
        (0.5, "s", [0.25]),
        (0.02, "cores", [0.01]),
        (160, "MB", [160]),
    ],
)
def test_a_machine_half_as_fast_does_half_in_twice_the_time(
    figure: Any, unit: str, expected: list[float]
) -> None:
    row = {"figure": figure, "unit": unit, "yardstick_ms": 2 * YARDSTICK_MS}
    assert converted(row) == expected


def test_a_short_measurement_has_the_yardstick_at_its_end() -> None:
    with Yardstick() as yardstick:
        pass
    assert yardstick.ms > 0
