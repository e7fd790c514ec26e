"""The order of a list as its address asks for it: ``sort=next``, or ``sort=-next`` for the other way round."""

from collections.abc import Collection
from dataclasses import dataclass

#: begins the order that goes down
DOWN = "-"


@dataclass(frozen=True, slots=True)
class Order:
    """By which column a list is sorted; without one it is as it always is."""

    column: str = ""
    descending: bool = False

    @property
    def text(self) -> str:
        """The order as it stands in an address: ``-next``."""
        return f"{DOWN if self.descending else ''}{self.column}"


UNSORTED = Order()


def read_order(text: str, columns: Collection[str]) -> Order:
    """Read ``-next``; what names no column of the list is no order."""
    column = text.strip().removeprefix(DOWN)
    return Order(column, text.strip().startswith(DOWN)) if column in columns else UNSORTED


def next_order(order: Order, column: str, *, falls: bool, default: Order) -> Order:
    """Return what a click on a column makes of an order: one way, the other, then the list's own order again.

    ``falls``: the first click sorts downwards. ``default`` is what the list's own order is; a click never asks for it by name.
    """
    ways = [way for way in (Order(column, falls), Order(column, not falls)) if way != default]
    at = ways.index(order) + 1 if order in ways else 0
    return ways[at] if at < len(ways) else UNSORTED
