"""List order: as requested by the URL, and after a click on a heading."""

from app.domain.lists.orders import UNSORTED, Order, next_order, read_order
from tests.support.truth_table import truth_table

COLUMNS = {"id", "next"}


@truth_table(
    "text, order",
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
def test_an_unknown_column_is_no_order(text: str, order: Order) -> None:
    assert read_order(text, COLUMNS) == order
    assert read_order(order.text, COLUMNS) == order


@truth_table(
    "column, falls, clicks",
    [
        ("next", False, ["next", "-next", "", "next"]),
        ("last", True, ["-last", "last", "", "-last"]),
        ("id", False, ["id", "", "id", ""]),  # descending is the default order of the list
    ],
)
def test_the_third_click_restores_the_default_order(column: str, falls: bool, clicks: list[str]) -> None:
    order, seen = UNSORTED, []
    for _click in clicks:
        order = next_order(order, column, falls=falls, default=Order("id", descending=True))
        seen.append(order.text)
    assert seen == clicks


def test_another_column_starts_over() -> None:
    assert next_order(Order("id"), "next", falls=False, default=UNSORTED) == Order("next")
