"""The order of a list as its address asks for it, and what a click makes of it."""

import pytest

from app.domain.list_orders import UNSORTED, Order, next_order, read_order

COLUMNS = {"id", "next"}


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("next", Order("next")),
        (" -next ", Order("next", descending=True)),
        ("", UNSORTED),
        ("-", UNSORTED),
        ("--next", UNSORTED),
        ("Next", UNSORTED),
        ("next;drop table", UNSORTED),
        ("trigger_next_time", UNSORTED),
    ],
)
def test_what_names_no_column_is_no_order(text: str, order: Order) -> None:
    assert read_order(text, COLUMNS) == order
    assert read_order(order.text, COLUMNS) == order


@pytest.mark.parametrize(
    ("column", "falls", "clicks"),
    [
        ("next", False, ["next", "-next", "", "next"]),
        ("last", True, ["-last", "last", "", "-last"]),
        ("id", False, ["id", "", "id", ""]),  # the other way round is what the list is by itself
    ],
)
def test_the_third_click_gives_the_lists_own_order_back(column: str, falls: bool, clicks: list[str]) -> None:
    order, seen = UNSORTED, []
    for _click in clicks:
        order = next_order(order, column, falls=falls, default=Order("id", descending=True))
        seen.append(order.text)
    assert seen == clicks


def test_another_column_begins_anew() -> None:
    assert next_order(Order("id"), "next", falls=False, default=UNSORTED) == Order("next")
