"""How deep a colour stands for how much: four levels above nothing."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

#: levels above 0, which is nothing
LEVELS: Final = 4
#: of the counts above nothing so many percent share the levels evenly, so that one odd day does not make all others pale
_SHARED_PERCENT: Final = 95


def level_tops(counts: Iterable[int]) -> tuple[int, ...]:
    """Return the highest counts of all levels but the last."""
    above = sorted(count for count in counts if count > 0)
    top = above[max(0, -(-len(above) * _SHARED_PERCENT // 100) - 1)] if above else 0
    return tuple(-(-top * level // LEVELS) for level in range(1, LEVELS))


def level_of(count: int, tops: tuple[int, ...]) -> int:
    """Return the level of a count, 0 for nothing."""
    return bisect_left(tops, count) + 1 if count > 0 else 0


def level_bounds(tops: tuple[int, ...]) -> list[tuple[int, int, int | None]]:
    """Return level, least and highest count (None: no bound) of each level that any count can have."""
    lows = [1, *(top + 1 for top in tops)]
    bounds = zip(range(1, LEVELS + 1), lows, [*tops, None], strict=True)
    return [(level, low, high) for level, low, high in bounds if high is None or low <= high]
