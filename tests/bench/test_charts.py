"""Charts: scales and what is drawn."""

from xml.etree import ElementTree

import pytest

from bench.charts import BOTTOM, LEFT, RIGHT, TOP, Labels, bars, lines, scaled, ticks

LABELS = Labels("A & B", "jobs", "triggers/s")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("highest", "expected"),
    [
        (0, [0, 1]),
        (5, [0, 1, 2, 3, 4, 5]),
        (7, [0, 2, 4, 6, 8]),
        (2_500, [0, 500, 1_000, 1_500, 2_000, 2_500]),
        (0.3, [0, 0.1, 0.2, 0.3]),
    ],
)
def test_ticks_are_round_and_reach_the_highest(highest: float, expected: list[float]) -> None:
    assert ticks(highest) == expected


def test_a_scale_may_go_upwards() -> None:
    assert scaled(25, 100, BOTTOM, TOP) == BOTTOM - (BOTTOM - TOP) / 4


def test_lines_go_through_their_points_in_order() -> None:
    root = ElementTree.fromstring(lines(LABELS, {"one": [(10, 5), (0, 0)]}))
    (line,) = root.iter(f"{SVG}polyline")
    assert line.get("points") == f"{LEFT}.0,{BOTTOM}.0 {RIGHT}.0,{TOP}.0"


def test_a_stack_is_as_high_as_the_sum_of_its_parts() -> None:
    root = ElementTree.fromstring(bars(LABELS, {"here": {"scan": 3, "claim": 2}}))
    drawn = [rect for rect in root.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    assert sum(float(rect.get("height", 0)) for rect in drawn) == pytest.approx(BOTTOM - TOP)


def test_a_chart_without_figures_is_drawn() -> None:
    assert ElementTree.fromstring(bars(LABELS, {})).findtext(f"{SVG}title") == "A & B"
