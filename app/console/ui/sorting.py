"""Sorting of lists: sortable columns and the links of their heads; on phones a select."""

from collections.abc import Mapping
from dataclasses import dataclass

from flask import request

from app.console.ui.listing import address_with
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.list_orders import UNSORTED, Order, next_order, read_order


@dataclass(frozen=True, slots=True)
class Column:
    """A column one can sort by."""

    title: str
    #: the first click sorts downwards: the latest or the most first
    falls: bool = False


@dataclass(frozen=True, slots=True)
class SortedList:
    """A list that can be sorted, and the order it has by itself."""

    default: Order
    #: by the name in the address; columns that can be left out have the same name there
    columns: Mapping[str, Column]


JOBS = SortedList(
    Order("id", descending=True),
    {
        "id": Column(_l("Job ID")),
        "desc": Column(_l("Job description")),
        "executor": Column(_l("Executor")),
        "mode": Column(_l("Run mode")),
        "owner": Column(_l("Owner")),
        "status": Column(_l("Status"), falls=True),
        "next": Column(_l("Next run")),
        "last": Column(_l("Last run"), falls=True),
    },
)
#: the log is long: it is sorted only by what an index keeps
LOGS = SortedList(Order("time", descending=True), {"time": Column(_l("Trigger time"))})
GROUPS = SortedList(
    Order("appname"),
    {
        "appname": Column("AppName"),
        "title": Column(_l("Title")),
        "registration": Column(_l("Registration")),
        "addresses": Column(_l("Online addresses")),
        "heartbeat": Column(_l("Last heartbeat"), falls=True),
    },
)
USERS = SortedList(
    Order("name"),
    {
        "name": Column(_l("User name")),
        "role": Column(_l("Role"), falls=True),
        "state": Column(_l("State"), falls=True),
    },
)
AUDIT = SortedList(Order("time", descending=True), {"time": Column(_l("Time"))})


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to sort a list, as one chooses it from a select."""

    value: str
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Sorting:
    """How the list of this request is sorted, and how else it could be."""

    what: SortedList
    order: Order

    def title(self, column: str) -> str:
        """Return the head of a column."""
        return str(self.what.columns[column].title)

    def state(self, column: str) -> str:
        """Return which way the list is sorted by a column, in the words of ``aria-sort``.

        Empty: by another.
        """
        order = self.what.default if self.order == UNSORTED else self.order
        if order.column != column:
            return ""
        return "descending" if order.descending else "ascending"

    def href(self, column: str) -> str:
        """Return the address a click on the head of a column leads to."""
        order = next_order(
            self.order, column, falls=self.what.columns[column].falls, default=self.what.default
        )
        return address_with(sort=order.text or None, page=None)

    @property
    def choices(self) -> list[Choice]:
        """Both ways of each column."""
        ways = [Order(column, descending) for column in self.what.columns for descending in (False, True)]
        return [self._choice(way) for way in ways]

    def _choice(self, way: Order) -> Choice:
        title = self.title(way.column)
        text = (
            _("%(column)s, descending", column=title)
            if way.descending
            else _("%(column)s, ascending", column=title)
        )
        asked = UNSORTED if way == self.what.default else way
        return Choice(asked.text, text, asked == self.order)


def asked_order(what: SortedList) -> Order:
    """Return the order the address asks for; the list's own asked for by name is the same as none."""
    order = read_order(request.args.get("sort", ""), what.columns)
    return UNSORTED if order == what.default else order
