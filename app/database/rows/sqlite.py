"""Rows for SQLite: one statement, executed for each row.

Rows go to the driver as tuples, because SQLAlchemy builds a dictionary of parameters per row, which takes a
quarter of the time of a claim or callback.
"""

from collections.abc import Sequence

from sqlalchemy import Table, func, select
from sqlalchemy.orm import Session

from app.database.rows.columns import Columns
from app.database.sql import direct

_LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"


def insert(session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
    """Insert the rows."""
    direct.execute_many(session, _insert_text(table, names), list(zip(*columns, strict=True)))


def insert_with_ids(session: Session, table: Table, names: Sequence[str], columns: Columns) -> list[int]:
    """Insert the rows; return their ids in order, which SQLite cannot return for many rows."""
    # the transaction started as IMMEDIATE, so no other can take these ids
    found = direct.execute(session, _LAST_ID, (table.name,))
    last = found[0][0] if found else session.execute(select(func.max(table.c.id))).scalar() or 0
    ids = list(range(last + 1, last + 1 + len(columns[0])))
    insert(session, table, ["id", *names], [ids, *columns])
    return ids


def update(session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
    """Update the rows by the first column, the id."""
    ids, *others = columns
    sets = ", ".join(f"{name} = ?" for name in names[1:])
    statement = f"UPDATE {table.name} SET {sets} WHERE id = ?"  # nosec B608  # names from the model
    direct.execute_many(session, statement, list(zip(*others, ids, strict=True)))


def _insert_text(table: Table, names: Sequence[str]) -> str:
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"  # nosec B608  # names from the model
