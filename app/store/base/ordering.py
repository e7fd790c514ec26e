"""Sort orders of lists: ORDER BY with empty values last and the row id as tie-breaker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, SQLColumnExpression, case, func, literal

from app.clock import LATEST_MS
from app.domain.lists.orders import Order
from app.models.base import EpochMillis

#: a column, or an expression of columns
Expression = SQLColumnExpression[Any]
#: replaces a missing instant in descending order
EARLIEST_MS = 0


@dataclass(frozen=True, slots=True)
class SortKey:
    """Expressions a list is sorted by for one of its columns."""

    columns: tuple[Expression, ...]
    #: replaces ``columns`` in descending order
    descending: tuple[Expression, ...] | None = None
    #: precedes the columns, ascending in both directions: highest for rows without a value
    rank: ColumnElement[int] | None = None


Keys = Mapping[str, SortKey]


def by_text(column: Expression) -> SortKey:
    """Sort by a text, ignoring case; an empty text counts as no value."""
    text = func.lower(func.coalesce(column, ""))
    return SortKey((text,), rank=case((text == "", 1), else_=0))


def by_instant(*subqueries: ScalarSelect[Any]) -> SortKey:
    """Sort by the first non-null subquery result.

    Has no rank, because a rank would run each subquery twice.
    """
    latest, earliest = (literal(instant_ms, EpochMillis) for instant_ms in (LATEST_MS, EARLIEST_MS))
    return SortKey((func.coalesce(*subqueries, latest),), descending=(func.coalesce(*subqueries, earliest),))


def ordering(
    order: Order, keys: Keys, *, row_id: Expression, default: Sequence[Expression]
) -> Sequence[Expression]:
    """Return the ORDER BY of a list; ``default`` if the order is not one of the keys.

    Equal rows are ordered by ``row_id`` in the same direction.
    """
    key = keys.get(order.column)
    if key is None:
        return default
    columns = key.descending if order.descending and key.descending is not None else key.columns
    columns_in_order = [column.desc() if order.descending else column.asc() for column in (*columns, row_id)]
    return columns_in_order if key.rank is None else [key.rank.asc(), *columns_in_order]
