"""Figures of two things that took turns."""

import statistics
from collections.abc import Mapping, Sequence

Figures = Mapping[str, Sequence[float]]


def ratios(first: Figures, second: Figures, turns: int) -> dict[str, float]:
    """Return the medians, over pairs of neighbouring turns, of the ratios of their means, second to first.

    A sequence has the figures of ``turns`` turns of the same length, one after the other.
    """

    def means(figures: Sequence[float]) -> list[float]:
        size = len(figures) // turns
        return [statistics.fmean(figures[start : start + size]) for start in range(0, len(figures), size)]

    pairs = {name: zip(means(first[name]), means(figures), strict=True) for name, figures in second.items()}
    return {name: round(statistics.median(b / a for a, b in both), 2) for name, both in pairs.items()}
