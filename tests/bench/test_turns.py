"""Figures of two things that took turns."""

from bench.turns import ratios


def test_a_ratio_is_the_median_over_neighbouring_turns() -> None:
    """The second turn is that of a machine that is ten times as slow."""
    first = {"claim": [1.0, 1.0, 10.0, 10.0, 2.0, 2.0]}
    second = {"claim": [2.0, 4.0, 11.0, 11.0, 2.0, 3.0]}
    assert ratios(first, second, turns=3) == {"claim": 1.25}
