"""Paging and filters of the lists; kept in the URL so that a list can be reloaded and shared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from flask import request, url_for
from werkzeug.datastructures import MultiDict

from app.store.base.paging import ID_MAX, Page, to_id

T = TypeVar("T")

#: page sizes offered, and the default
PAGE_SIZES = (10, 25, 50, 100)
DEFAULT_PAGE_SIZE = 25
#: the pager shows this many pages to either side of the current one
NEIGHBOURS = 2
#: highest page number served: larger offsets are slow
MAX_PAGE = 100_000
#: query parameters of a notice (notices.py), dropped from links
PASSING = frozenset({"done", "at", "of", "named", "mark"})


@dataclass(frozen=True, slots=True)
class Paging:
    """Paging state of a list."""

    page: int
    length: int
    total: int
    #: whether the count stopped at ``total``
    is_capped: bool = False
    #: second up to which further pages list rows, so that new ones do not move them; 0: no bound
    until_s: int = 0
    sizes: tuple[int, ...] = PAGE_SIZES

    @property
    def pages(self) -> int:
        """Number of pages, at least 1."""
        return max(1, -(-self.total // self.length))

    @property
    def numbers(self) -> list[int | None]:
        """Page numbers to show; None is a gap."""
        near = range(self.page - NEIGHBOURS, self.page + NEIGHBOURS + 1)
        pages = sorted({1, self.pages, *(number for number in near if 1 <= number <= self.pages)})
        numbers: list[int | None] = []
        for before, number in zip([0, *pages], pages, strict=False):
            if number - before > 1:
                numbers.append(None)
            numbers.append(number)
        return numbers

    def page_url(self, page: int) -> str:
        """Return the URL of another page of the list."""
        return address_with(page=page, until=(self.until_s or None) if page > 1 else None)

    def size_url(self, length: int) -> str:
        """Return the URL of the list with another page size."""
        return address_with(length=length, page=None, until=None)


@dataclass(frozen=True, slots=True)
class Chip:
    """Active filter and the URL of the list without it."""

    label: str
    value: str
    href: str


def fetch_requested(fetch: Callable[..., Page[T]]) -> tuple[Page[T], Paging]:
    """Return the requested page of a list, and its paging; the last page if the list ends before it.

    ``fetch`` returns a page by its ``start`` and ``length``.
    """
    number, length = min(MAX_PAGE, max(1, whole_number("page", 1))), whole_number("length", DEFAULT_PAGE_SIZE)
    length = length if length in PAGE_SIZES else DEFAULT_PAGE_SIZE
    page = fetch(start=(number - 1) * length, length=length)
    if not page.rows and number > 1:
        number = Paging(number, length, page.total).pages
        page = fetch(start=(number - 1) * length, length=length)
    return page, Paging(number, length, page.total, is_capped=page.is_capped)


def whole_number(name: str, default: int) -> int:
    """Return an integer query parameter; ``default`` if missing or out of the range of ids."""
    text = request.args.get(name, "").strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > len(str(ID_MAX)):
        return default
    return int(text) if abs(int(text)) <= ID_MAX else default


def ticked_ids(limit: int) -> list[int]:
    """Return the selected ids, at most ``limit`` + 1, which means too many."""
    texts = request.values.getlist("id")[: limit + 1]
    return [object_id for text in texts if (object_id := to_id(text))]


def here() -> str:
    """Return the URL of this page."""
    return request.script_root + request.full_path.rstrip("?")


def address_with(**changes: Any) -> str:
    """Return the URL of this page with changed query parameters; None removes one."""
    query = MultiDict(request.args)
    for name, value in changes.items():
        query.poplist(name)
        if value is not None:
            query[name] = value
    # endpoint, _scheme and others are parameters of url_for
    reserved_names = ("endpoint", *(name for name in request.args if name.startswith("_")))
    for name in (*PASSING, *reserved_names):
        query.poplist(name)
    values: dict[str, Any] = {**query.to_dict(flat=False), **(request.view_args or {})}
    return url_for(request.endpoint or "dashboard.index", **values)


#: parameters that go with another one
_WITH = {"range": ("from", "to")}


def chips(filters: Sequence[tuple[str, str, str]]) -> list[Chip]:
    """Return a chip per active filter, from (parameter, label, shown value); empty values are skipped."""
    return [
        Chip(label, value, address_with(**dict.fromkeys(("page", "until", name, *_WITH.get(name, ())))))
        for name, label, value in filters
        if value
    ]
