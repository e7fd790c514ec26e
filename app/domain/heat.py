"""Heat map levels: four shades of colour for the counts above the lowest."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

#: levels above level 0, which is the lowest
LEVELS: Final = 4
#: percentage of the counts that share the levels evenly, so that one outlier does not make all others pale
_SHARED_PERCENT: Final = 95


def level_tops(counts: Iterable[int], *, least: int = 0) -> tuple[int, ...]:
    """Return the highest count of each level except the last, ascending; ``least`` is that of level 0."""
    above = sorted(count - least for count in counts if count > least)
    top = above[max(0, -(-len(above) * _SHARED_PERCENT // 100) - 1)] if above else 0
    return (least, *(least - (-top * level // LEVELS) for level in range(1, LEVELS)))


def level_of(count: int, tops: tuple[int, ...]) -> int:
    """Return the level of a count, 0 for the lowest."""
    return bisect_left(tops, count)


def level_bounds(tops: tuple[int, ...]) -> list[tuple[int, int, int | None]]:
    """Return level, lowest and highest count (None: no bound) of each level above 0 that is not empty."""
    bounds = zip(range(1, LEVELS + 1), (top + 1 for top in tops), [*tops[1:], None], strict=True)
    return [(level, low, high) for level, low, high in bounds if high is None or low <= high]
