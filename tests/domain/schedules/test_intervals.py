"""Intervals in the largest unit that divides them."""

from app.domain.schedules.intervals import interval_of
from tests.support.truth_table import truth_table


@truth_table(
    "seconds, interval",
    [
        (0, (0, "second")),
        (1, (1, "second")),
        (59, (59, "second")),
        (60, (1, "minute")),
        (90, (90, "second")),
        (900, (15, "minute")),
        (3_600, (1, "hour")),
        (5_400, (90, "minute")),
        (7_200, (2, "hour")),
        (86_400, (1, "day")),
        (90_000, (25, "hour")),
        (172_800, (2, "day")),
    ],
)
def test_an_interval_has_the_largest_unit_without_a_remainder(
    seconds: int, interval: tuple[int, str]
) -> None:
    assert interval_of(seconds) == interval
