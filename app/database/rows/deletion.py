"""Bulk deletion by the values of an indexed column, in one statement for any number of rows."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Delete, Select, Table, delete, select
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningDelete

from app.database.list_parameters import list_of
from app.database.rows.bulk import table_of
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.models.base import Base


def by_values(session: Session, model: type[Base], column: str, values: Sequence[int]) -> int:
    """Delete the rows with these values of an indexed column; return how many there were.

    MySQL and MariaDB prefer to scan a small table, which waits for rows locked by other transactions. There
    the rows are deleted by id, with ORDER BY and a LIMIT that excludes nothing but makes the database use the
    index.
    """
    if not values:
        return 0
    table, wanted = table_of(model), {WANTED: list(values)}
    if session.get_bind().dialect.name != "mysql":
        return direct.change(session, _delete(table, column), wanted)
    rows = [] if column == "id" else direct.read(session, _select_by(table, column, ()), wanted)
    return _delete_ids(session, table, values if column == "id" else [row[0] for row in rows])


def returning(
    session: Session, model: type[Base], column: str, values: Sequence[int], *, returned: Sequence[str]
) -> Sequence[Sequence[Any]]:
    """Delete the rows as ``by_values`` does, in as many statements; return columns of theirs."""
    if not values:
        return []
    table, wanted = table_of(model), {WANTED: list(values)}
    if session.get_bind().dialect.name != "mysql":
        return direct.read(session, _delete(table, column, tuple(returned)), wanted)
    rows = direct.read(session, _select_by(table, column, tuple(returned)), wanted)
    _delete_ids(session, table, [row[-1] for row in rows])
    return rows


@cache
def _delete(table: Table, column: str, returned: tuple[str, ...] = ()) -> Delete | ReturningDelete[Any]:
    deleted = delete(table).where(among(table.c[column]))
    if returned:
        return deleted.returning(*[table.c[name] for name in returned])
    return deleted


@cache
def _select_by(table: Table, column: str, returned: tuple[str, ...]) -> Select[Any]:
    """Return the rows to be deleted; the last column is the id."""
    columns = [table.c[name] for name in returned]
    return select(*columns, table.c.id).where(among(table.c[column])).order_by(table.c.id)


def _delete_ids(session: Session, table: Table, ids: Sequence[int]) -> int:
    """Delete rows by id on MySQL, see ``by_values``; return how many there were."""
    if not ids:
        return 0
    statement = f"DELETE FROM {table.name} WHERE id IN %s ORDER BY id LIMIT %s"  # nosec B608  # names from the model
    return direct.change_text(session, statement, (list_of(ids), len(ids)))
