"""Heat map levels: four shades of colour for the counts above zero."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import Final

#: levels above level 0, which is zero
LEVELS: Final = 4
#: percentage of the counts that share the levels evenly, so that one outlier does not make all others pale
_SHARED_PERCENT: Final = 95
#: percentage of the highest count by which all must differ to have colours of their own
_FLAT_PERCENT: Final = 10
#: level of counts that hardly differ
FLAT_LEVEL: Final = 2


def level_tops(counts: Iterable[int]) -> tuple[int, ...]:
    """Return the highest count of each level except the last, ascending; that of level 0 is 0."""
    above = sorted(count for count in counts if count)
    top = above[max(0, -(-len(above) * _SHARED_PERCENT // 100) - 1)] if above else 0
    return tuple(-(-top * level // LEVELS) for level in range(LEVELS))


def is_flat(counts: Collection[int]) -> bool:
    """Whether the counts differ so little that different colours would mislead."""
    highest = max(counts, default=0)
    return highest > 0 and (highest - min(counts)) * 100 < highest * _FLAT_PERCENT


def level_of(count: int, tops: tuple[int, ...]) -> int:
    """Return the level of a count, 0 for zero."""
    return bisect_left(tops, count)


def level_bounds(tops: tuple[int, ...]) -> list[tuple[int, int, int | None]]:
    """Return level, lowest and highest count (None: no bound) of each level above 0 that is not empty."""
    bounds = zip(range(1, LEVELS + 1), (top + 1 for top in tops), [*tops[1:], None], strict=True)
    return [(level, low, high) for level, low, high in bounds if high is None or low <= high]
