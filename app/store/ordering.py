"""The order of a list by one of its columns: rows without a value come last both ways, and no two rows are equal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, SQLColumnExpression, case, func, literal

from app.clock import LATEST_MS
from app.domain.list_orders import Order
from app.models.base import EpochMillis

#: a column, or what is made of columns
Expression = SQLColumnExpression[Any]
#: what stands for an instant that is none, downwards
EARLIEST_MS = 0


@dataclass(frozen=True, slots=True)
class SortKey:
    """What a column is sorted by."""

    columns: tuple[Expression, ...]
    #: downwards, where that is not the same
    falling: tuple[Expression, ...] | None = None
    #: comes before the columns and goes up both ways: rows without a value have the highest
    rank: ColumnElement[int] | None = None


Keys = Mapping[str, SortKey]


def by_text(column: Expression) -> SortKey:
    """Sort by a text in whatever case; an empty one is no value."""
    text = func.lower(func.coalesce(column, ""))
    return SortKey((text,), rank=case((text == "", 1), else_=0))


def by_instant(found: ScalarSelect[Any]) -> SortKey:
    """Sort by an instant that each row looks up: once, since a rank beside it would look it up again."""
    latest, earliest = (literal(instant_ms, EpochMillis) for instant_ms in (LATEST_MS, EARLIEST_MS))
    return SortKey((func.coalesce(found, latest),), falling=(func.coalesce(found, earliest),))


def ordering(
    order: Order, keys: Keys, *, row_id: Expression, default: Sequence[Expression]
) -> Sequence[Expression]:
    """Return what to order a list by; ``default`` where the order names none of the keys. Ties go by ``row_id`` in the same direction."""
    key = keys.get(order.column)
    if key is None:
        return default
    columns = key.falling if order.descending and key.falling is not None else key.columns
    turned = [column.desc() if order.descending else column.asc() for column in (*columns, row_id)]
    return turned if key.rank is None else [key.rank.asc(), *turned]
