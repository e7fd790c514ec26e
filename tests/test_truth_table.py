"""Truth tables name every row that fails."""

import pytest

from tests.support.truth_table import truth_table


def check_sum(left: int, right: int, total: int) -> None:
    assert left + right == total


def test_a_table_that_holds_passes() -> None:
    truth_table("left, right, total", [(1, 2, 3), (2, 2, 4)])(check_sum)()


def test_each_row_that_fails_is_named() -> None:
    table = truth_table("left, right, total", [(1, 2, 3), (1, 1, 3), (0, 0, 1)])
    with pytest.raises(pytest.fail.Exception, match=r"(?s)2 of 3 rows.*'right': 1.*'total': 1"):
        table(check_sum)()


def test_tables_multiply_and_take_fixtures() -> None:
    calls = []

    @truth_table("left", [1, 2])
    @truth_table("right", [3, 4])
    def note(left: int, right: int, total: int) -> None:
        calls.append((left, right, total))

    note(total=9)
    assert calls == [(1, 3, 9), (1, 4, 9), (2, 3, 9), (2, 4, 9)]


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="proves nothing"):
        truth_table("left", [])
