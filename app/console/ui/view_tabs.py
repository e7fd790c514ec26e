"""Tabs of a list: all rows, the built-in views with their numbers of rows, and saved views."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from app.console.ui.saved_views import ListViews


@dataclass(frozen=True, slots=True)
class Count:
    """Number of rows of a view."""

    number: int
    #: there may be more
    is_cut: bool = False
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Tab:
    """View of the list as a tab."""

    title: str
    href: str
    current: bool
    #: None: not counted
    count: Count | None = None


def view_tabs(
    views: ListViews, *, first: Tab, counts: Mapping[str, Count], absent: Collection[str] = ()
) -> list[Tab]:
    """Return the tabs: ``first`` is the list without filters, ``counts`` has the keys of built-in views.

    ``absent``: keys of the views that are left out.
    """
    links = [link for link in views.links if not link.key or link.key not in absent]
    return [first, *(Tab(link.title, link.href, link.current, counts.get(link.key)) for link in links)]


def is_unfiltered(views: ListViews) -> bool:
    """Whether the list is shown without filters: neither as a view nor as what can be saved as one."""
    return not views.save_href and not any(link.current for link in views.links)
