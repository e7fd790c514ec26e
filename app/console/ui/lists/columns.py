"""List columns: the one table of what lists show, can be sorted by, and let readers hide.

A new column of a list is a line here and a cell in its rows; a sortable one also has its SQL key in the
store. The cells of a row have the order of the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.console.web.language import lazy_gettext as _l
from app.console.web.language import lazy_pgettext
from app.domain.lists.orders import Order


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a list.

    Its name is the sort key in addresses, and its key in the cookie of chosen columns.
    """

    name: str
    title: str
    is_sortable: bool = False
    #: the first click on its head sorts descending: the latest or the most first
    descends_first: bool = False
    #: readers can hide it; a row's subject and its actions always stay
    can_hide: bool = False
    #: shown to readers who have not chosen columns
    is_default: bool = True
    #: name of the column in whose cells its values are shown, too
    shown_in: str = ""


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Columns of one list, and its default order."""

    default: Order
    columns: Sequence[Column]

    @property
    def cells(self) -> list[Column]:
        """The columns that have cells of their own, from left to right."""
        return [column for column in self.columns if not column.shown_in]

    @property
    def sortable(self) -> dict[str, Column]:
        """The columns the list can be sorted by, by name."""
        return {column.name: column for column in self.columns if column.is_sortable}

    @property
    def titles(self) -> dict[str, str]:
        """The titles in the reader's language, by the name of the column."""
        return {column.name: str(column.title) for column in self.columns}

    def shares_cells(self, name: str) -> str:
        """Return the name of the sortable column shown in the cells of another one; empty: none."""
        return next((column.name for column in self.columns if column.shown_in == name), "")


JOBS = ColumnTable(
    Order("id", descending=True),
    (
        Column("tick", _l("Select")),
        Column("id", _l("Job ID"), is_sortable=True),
        Column("desc", _l("Job description"), is_sortable=True),
        Column("executor", _l("Executor"), is_sortable=True, shown_in="desc"),
        Column("schedule", _l("Schedule"), can_hide=True),
        Column("conf", _l("Expression"), can_hide=True, is_default=False),
        Column("mode", _l("Run mode"), is_sortable=True, can_hide=True, is_default=False),
        Column("owner", _l("Owner"), is_sortable=True, can_hide=True),
        Column("status", _l("Status"), is_sortable=True, descends_first=True, can_hide=True),
        Column("next", _l("Next run"), is_sortable=True, can_hide=True),
        Column("last", _l("Last run"), is_sortable=True, descends_first=True, can_hide=True),
        Column("act", _l("Actions")),
    ),
)
#: the log is long: it is sorted only by what an index keeps in order
LOGS = ColumnTable(
    Order("time", descending=True),
    (
        Column("id", _l("Run ID")),
        Column("job", _l("Job")),
        *(
            Column(name, title, can_hide=True, is_default=False)
            for name, title in (
                ("executor", _l("Executor")),
                ("address", _l("Address")),
                ("handler", "JobHandler"),
                ("parameter", _l("Parameter")),
                ("trigger", _l("Trigger")),
            )
        ),
        Column("time", lazy_pgettext("run", "Time"), is_sortable=True),
        Column("duration", _l("Duration"), can_hide=True),
        Column("state", _l("State")),
        *(
            Column(name, title, can_hide=True, is_default=False)
            for name, title in (
                ("trigger-result", _l("Dispatch")),
                ("trigger-note", _l("Dispatch trace")),
                ("handle-time", _l("Ended")),
                ("handle-result", lazy_pgettext("run", "Result")),
                ("handle-note", _l("Message")),
            )
        ),
        Column("act", _l("Actions")),
    ),
)
GROUPS = ColumnTable(
    Order("appname"),
    (
        Column("appname", "AppName", is_sortable=True),
        Column("title", _l("Title"), is_sortable=True),
        Column("registration", _l("Registration"), is_sortable=True),
        Column("addresses", _l("Instances"), is_sortable=True),
        Column("heartbeat", _l("Last heartbeat"), is_sortable=True, descends_first=True),
    ),
)
USERS = ColumnTable(
    Order("name"),
    (
        Column("name", _l("User name"), is_sortable=True),
        Column("role", _l("Role"), is_sortable=True, descends_first=True),
        Column("state", _l("State"), is_sortable=True, descends_first=True),
    ),
)
AUDIT = ColumnTable(Order("time", descending=True), (Column("time", _l("Time"), is_sortable=True),))

#: lists whose columns can be hidden, by their names in forms and cookies
TABLES = {"jobs": JOBS, "logs": LOGS}
