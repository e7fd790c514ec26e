"""Sort order of a list, as in its URL: ``sort=next``, or ``sort=-next`` for descending."""

from collections.abc import Collection
from dataclasses import dataclass

#: prefix of a descending order
DOWN = "-"


@dataclass(frozen=True, slots=True)
class Order:
    """Sort order: column and direction; without a column, the default order of the list."""

    column: str = ""
    descending: bool = False

    @property
    def text(self) -> str:
        """The order as in a URL: ``-next``."""
        return f"{DOWN if self.descending else ''}{self.column}"


UNSORTED = Order()


def read_order(text: str, columns: Collection[str]) -> Order:
    """Parse a text such as ``-next``; UNSORTED if it names no column of the list."""
    column = text.strip().removeprefix(DOWN)
    return Order(column, text.strip().startswith(DOWN)) if column in columns else UNSORTED


def next_order(order: Order, column: str, *, falls: bool, default: Order) -> Order:
    """Return the order after a click on a column: one direction, the other, then the default order again.

    ``falls``: the first click sorts descending. ``default`` is the default order of the list, which is never
    requested by name.
    """
    orders = [choice for choice in (Order(column, falls), Order(column, not falls)) if choice != default]
    position = orders.index(order) + 1 if order in orders else 0
    return orders[position] if position < len(orders) else UNSORTED
