"""Bulk deletion by the values of an indexed column, in one statement for any number of rows."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.database.dialects.choice import dialect_of
from app.database.rows.bulk import table_of
from app.models.base import Base


def by_values(session: Session, model: type[Base], column: str, values: Sequence[int]) -> int:
    """Delete the rows with these values of an indexed column; return how many there were."""
    return dialect_of(session).delete_by(session, table_of(model), column, values) if values else 0


def returning(
    session: Session, model: type[Base], column: str, values: Sequence[int], *, columns: Sequence[str]
) -> Sequence[Sequence[Any]]:
    """Delete the rows as ``by_values`` does, in as many statements; return columns of theirs."""
    if not values:
        return []
    return dialect_of(session).delete_returning(session, table_of(model), column, values, columns)
