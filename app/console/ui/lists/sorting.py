"""Sorting: links in the column heads that sort a list, and a select where rows are shown as cards."""

from dataclasses import dataclass

from flask import request

from app.console.ui.lists.columns import AUDIT, GROUPS, JOBS, LOGS, USERS, ColumnTable
from app.console.ui.lists.listing import address_with
from app.console.web.language import _
from app.domain.lists.orders import UNSORTED, Order, next_order, read_order

__all__ = ["AUDIT", "GROUPS", "JOBS", "LOGS", "USERS"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of the select: a column and a direction."""

    value: str
    text: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Sorting:
    """Current order of the requested list, and links to the other orders."""

    table: ColumnTable
    order: Order

    def title(self, column: str) -> str:
        """Return the head of a column."""
        return str(self.table.sortable[column].title)

    def state(self, column: str) -> str:
        """Return a column's ``aria-sort``; empty if the list is sorted by another column."""
        order = self.table.default if self.order == UNSORTED else self.order
        if order.column != column:
            return ""
        return "descending" if order.descending else "ascending"

    def href(self, column: str) -> str:
        """Return the URL of a click on the head of a column."""
        falls = self.table.sortable[column].descends_first
        order = next_order(self.order, column, falls=falls, default=self.table.default)
        return address_with(sort=order.text or None, page=None, until=None)

    @property
    def choices(self) -> list[Choice]:
        """Options of the select: every sortable column in both directions."""
        orders = [Order(column, descending) for column in self.table.sortable for descending in (False, True)]
        return [self._choice(order) for order in orders]

    def _choice(self, order: Order) -> Choice:
        title = self.title(order.column)
        text = (
            _("%(column)s, descending", column=title)
            if order.descending
            else _("%(column)s, ascending", column=title)
        )
        order_text = UNSORTED if order == self.table.default else order
        return Choice(order_text.text, text, order_text == self.order)


def requested_order(table: ColumnTable) -> Order:
    """Return the order in the URL; the list's default order counts as unsorted."""
    order = read_order(request.args.get("sort", ""), table.sortable)
    return UNSORTED if order == table.default else order
