"""Logical time: the rule that reads it, where it is shown, and which ones can be given."""

from typing import NamedTuple

import pytest

from app.clock import DAY_MS
from app.domain.runs.logical_times import check_logical, logical_of, second_of, shown_logical_of
from app.errors import InvalidInput

NOW = 1_795_420_800_123


class Row(NamedTuple):
    logical_ms: int | None
    fire_time: int | None
    trigger_time: int | None


@pytest.mark.parametrize(
    ("row", "logical_ms"),
    [
        (Row(1, 2, 3), 1),
        (Row(0, 2, 3), 0),  # 1970 is a time
        (Row(None, 2, 3), 2),
        (Row(None, 0, 3), 0),
        (Row(None, None, 3), 3),
        (Row(None, None, None), None),
    ],
)
def test_one_rule_reads_it(row: Row, logical_ms: int | None) -> None:
    assert logical_of(row) == logical_ms


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (Row(NOW, None, NOW + 59_999), None),
        (Row(NOW, None, NOW + 60_000), NOW),
        (Row(NOW + 60_000, None, NOW), NOW + 60_000),
        (Row(None, NOW, NOW + 60_000), NOW),
        (Row(None, None, NOW), None),
        (Row(NOW, None, None), None),
    ],
)
def test_it_is_shown_where_it_differs_from_the_trigger(row: Row, shown: int | None) -> None:
    assert shown_logical_of(row) == shown


def test_a_run_by_hand_stands_for_its_second() -> None:
    assert second_of(NOW) == NOW - 123


@pytest.mark.parametrize("logical_ms", [0, NOW, NOW + 31 * DAY_MS])
def test_these_can_be_given(logical_ms: int) -> None:
    check_logical(logical_ms, now_ms=NOW)


@pytest.mark.parametrize("logical_ms", [-1, NOW + 31 * DAY_MS + 1, 2**62])
def test_these_cannot_be_given(logical_ms: int) -> None:
    with pytest.raises(InvalidInput, match="must lie between 1970 and 31 days from now"):
        check_logical(logical_ms, now_ms=NOW)
