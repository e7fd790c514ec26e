"""Heat levels: counts to colours."""

from app.domain.lists.heat_levels import is_flat, level_bounds, level_of, level_tops
from tests.support.truth_table import truth_table


@truth_table(
    "counts, levels",
    [
        ([], []),
        ([0, 0], [0, 0]),
        ([0, 25, 50, 75, 100], [0, 1, 2, 3, 4]),
        # similar days look similar
        ([3000, 3100, 2900, 10], [4, 4, 4, 1]),
        ([1, 1, 0], [1, 1, 0]),
        # one outlier in a hundred days leaves the others their colours
        ([*range(1, 100), 100_000], [*([1] * 24), *([2] * 24), *([3] * 24), *([4] * 28)]),
    ],
)
def test_levels_divide_the_usual_range(counts: list[int], levels: list[int]) -> None:
    tops = level_tops(counts)
    assert [level_of(count, tops) for count in counts] == levels


def test_bounds_are_contiguous_and_skip_empty_levels() -> None:
    assert level_bounds(level_tops([100])) == [(1, 1, 25), (2, 26, 50), (3, 51, 75), (4, 76, None)]
    assert level_bounds(level_tops([1, 1])) == [(1, 1, 1), (4, 2, None)]


@truth_table(
    "counts, flat",
    [
        ([], False),
        ([0, 0], False),
        ([5], True),
        ([5_650, 5_656], True),
        ([91, 100], True),
        ([90, 100], False),
        ([0, 5], False),
    ],
)
def test_counts_that_hardly_differ_are_flat(counts: list[int], flat: bool) -> None:
    assert is_flat(counts) is flat
