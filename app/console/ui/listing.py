"""Paging and filters of the lists, kept in the address so that they can be reloaded, shared and gone back to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flask import request, url_for
from werkzeug.datastructures import MultiDict

#: page sizes offered, and the one taken where none is asked for
PAGE_SIZES = (10, 25, 50, 100)
DEFAULT_PAGE_SIZE = 10
#: the pager shows this many pages to either side of the current one
NEIGHBOURS = 2
#: pages beyond are not turned to: their offsets grow slow, and nobody reads them
MAX_PAGE = 100_000
#: highest id a table of the original can hold
MAX_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Paging:
    """Where a list stands."""

    page: int
    length: int
    total: int
    #: the count stopped at ``total``: there may be more
    capped: bool = False
    sizes: tuple[int, ...] = PAGE_SIZES

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.length))

    @property
    def numbers(self) -> list[int | None]:
        """The page numbers to show; None stands for a gap."""
        near = range(self.page - NEIGHBOURS, self.page + NEIGHBOURS + 1)
        shown = sorted({1, self.pages, *(number for number in near if 1 <= number <= self.pages)})
        numbers: list[int | None] = []
        for before, number in zip([0, *shown], shown, strict=False):
            if number - before > 1:
                numbers.append(None)
            numbers.append(number)
        return numbers

    def page_url(self, page: int) -> str:
        """Return the address of another page of the same list."""
        return address_with(page=page)

    def size_url(self, length: int) -> str:
        """Return the address of the list in pages of another size."""
        return address_with(length=length, page=None)


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter and the address of the list without it."""

    label: str
    value: str
    href: str


def paging(total: int, *, capped: bool = False) -> Paging:
    """Return where the list of this request stands, given how many rows it has."""
    return Paging(page=asked_page(), length=asked_length(), total=total, capped=capped)


def asked_page() -> int:
    """Return the page number asked for, from 1."""
    return min(MAX_PAGE, max(1, whole_number("page", 1)))


def asked_length() -> int:
    """Return the page size asked for, one of PAGE_SIZES."""
    length = whole_number("length", DEFAULT_PAGE_SIZE)
    return length if length in PAGE_SIZES else DEFAULT_PAGE_SIZE


def asked_start() -> int:
    """Return the offset of the first row asked for."""
    return (asked_page() - 1) * asked_length()


def whole_number(name: str, default: int) -> int:
    """Return a whole number of the query; ``default`` where it is missing or no number an id or a page could be."""
    text = request.args.get(name, "").strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > len(str(MAX_ID)):
        return default
    return int(text) if abs(int(text)) <= MAX_ID else default


def ticked_ids(limit: int) -> list[int]:
    """Return the ticked ids of the query or the form; one more than ``limit`` at most, which tells that there are too many."""
    texts = request.values.getlist("id")[: limit + 1]
    return [
        int(text)
        for text in texts
        if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MAX_ID
    ]


def here() -> str:
    """Return the address of this page as a link to it."""
    return request.script_root + request.full_path.rstrip("?")


def address_with(**changes: Any) -> str:
    """Return the address of this page with some query parameters changed; None removes one."""
    query = MultiDict(request.args)
    for name, value in changes.items():
        query.poplist(name)
        if value is not None:
            query[name] = value
    for passing in (
        "done",
        "at",
        "mark",
        "endpoint",
        *(name for name in request.args if name.startswith("_")),
    ):  # endpoint, _scheme and the like mean url_for itself
        query.poplist(passing)
    values: dict[str, Any] = {**query.to_dict(flat=False), **(request.view_args or {})}
    return url_for(request.endpoint or "dashboard.index", **values)


def chips(filters: Sequence[tuple[str, str, str]]) -> list[Chip]:
    """Return a chip per active filter, from (parameter, label, shown value); an empty value is no filter."""
    return [
        Chip(label, value, address_with(page=None, **{name: None})) for name, label, value in filters if value
    ]
