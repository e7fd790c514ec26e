"""Pages of lists, and rules for searched texts and ids."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Select, false, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

T = TypeVar("T")

#: most rows of a page, whatever was requested
LENGTH_MAX = 100_000
#: MySQL and PostgreSQL take no larger offset
OFFSET_MAX = 2**31 - 1
#: highest id in tables of the original
ID_MAX = 2**31 - 1
#: highest number in a SMALLINT column
SMALL_MAX = 2**15 - 1
#: length of the longest searched column
SEARCHED_MAX = 255


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list, and the number of rows of the whole list."""

    rows: list[T]
    total: int
    #: counting stopped at ``total``: there may be more
    is_capped: bool = False


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """Rows of a list in order, and the id before which the list goes on; None: it ends here.

    It may have fewer rows than wanted, even none, although the list goes on: searching has a limit.
    """

    rows: list[T]
    before_id: int | None = None


def contains(column: "InstrumentedAttribute[Any]", text: str) -> ColumnElement[bool]:
    """Match ``text`` anywhere in the column, ignoring case; ``%`` and ``_`` are literal.

    A text that cannot be stored matches nothing.
    """
    return column.icontains(text, autoescape=True) if is_storable(text) else false()


def is_small(column: "InstrumentedAttribute[int]", number: int) -> ColumnElement[bool]:
    """Match a SMALLINT column; a larger number, which PostgreSQL refuses to compare, matches nothing."""
    return column == number if number <= SMALL_MAX else false()


def is_storable(text: str) -> bool:
    """Whether a searched column could hold the text."""
    return (
        len(text) <= SEARCHED_MAX
        and "\x00" not in text
        and not any("\ud800" <= character <= "\udfff" for character in text)
    )


def to_id(text: str) -> int:
    """Return the id in a text; 0, which is no id, if there is none."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(ID_MAX)) else 0
    return number if number <= ID_MAX else 0


def fetch_slice(
    session: Session, query: "Select[tuple[T]]", *, limit: int, searched_to: int | None = None
) -> Slice[T]:
    """Run a query whose rows have descending ids; ``searched_to`` is the last id it reads, None: all.

    Reads one row more than ``limit``, to know whether the list goes on.
    """
    rows = list(session.scalars(query.limit(limit + 1)))
    if len(rows) > limit:
        return Slice(rows[:limit], rows[limit - 1].id)  # type: ignore[attr-defined]
    return Slice(rows, searched_to)


def fetch_page(
    session: Session, query: "Select[tuple[T]]", *, start: int, length: int, count_to: int | None = None
) -> Page[T]:
    """Run an ordered query for one page; ``count_to`` limits what counting a long list costs."""
    matches: Select[Any] = query.with_only_columns(1, maintain_column_froms=True).order_by(None)
    if count_to is not None:
        matches = matches.limit(count_to + 1)
    total = session.scalar(select(func.count()).select_from(matches.subquery())) or 0
    is_capped = count_to is not None and total > count_to
    if is_capped and count_to is not None:
        total = count_to
    start, length = min(max(start, 0), OFFSET_MAX), min(max(length, 0), LENGTH_MAX)
    rows = (
        list(session.scalars(query.offset(start).limit(length)))
        if length and (start < total or is_capped)
        else []
    )
    return Page(rows, total, is_capped)
