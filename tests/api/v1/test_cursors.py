"""Cursors of lists."""

import pytest

from app.api.v1.cursors import BIG_ID, ID, INSTANT, cut, read_cursor, read_id_cursor, write_cursor
from app.errors import InvalidInput


def test_a_cursor_leads_back_to_its_position() -> None:
    assert read_cursor(write_cursor("ä", 7), str, ID) == ("ä", 7)
    assert read_id_cursor(write_cursor(9)) == 9
    assert read_id_cursor(write_cursor(2**31), BIG_ID) == 2**31
    assert read_id_cursor("") is None


@pytest.mark.parametrize(
    "text", ["x", "é", "=", write_cursor("7"), write_cursor(1, 2), write_cursor(2**31), write_cursor(0)]
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_id_cursor(text)
    assert refused.value.field == "cursor"


@pytest.mark.parametrize(
    ("found", "shown", "next_cursor"),
    [([], [], None), ([9, 7], [9, 7], None), ([9, 7, 4], [9, 7], write_cursor(7))],
)
def test_a_list_is_cut_with_the_cursor_of_its_last_item(
    found: list[int], shown: list[int], next_cursor: str | None
) -> None:
    assert cut(found, 2, lambda each: (each,)) == (shown, next_cursor)


@pytest.mark.parametrize("position", [("a\0", 1), ("a", 2**31), ("a", True), (1, 1)])
def test_a_position_that_no_column_holds_is_refused(position: tuple[str | int, int]) -> None:
    with pytest.raises(InvalidInput):
        read_cursor(write_cursor(*position), str, ID)
    with pytest.raises(InvalidInput):
        read_cursor(write_cursor(10**15, 1), INSTANT, BIG_ID)
