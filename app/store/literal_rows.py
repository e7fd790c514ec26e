"""Rows for MySQL and MariaDB: values in the text of a statement, where PyMySQL puts all parameters.

It would look at each value anew; here those of a column are written together.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Table
from sqlalchemy.orm import Session

#: values of each column, as the driver expects them
Columns = Sequence[Sequence[Any]]


class LiteralStatement(NamedTuple):
    """A statement with its values."""

    text: str
    #: what logs and errors show: the values may be secret, and are long
    shown: str


def insert_of(
    session: Session, table: Table, names: Sequence[str], columns: Columns, ending: str = ""
) -> LiteralStatement:
    """Return the INSERT of rows with these columns."""
    rows = map(", ".join, zip(*_literals(session, columns), strict=True))
    into = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES"  # nosec B608  # names from the model
    return LiteralStatement(f"{into} ({'), ('.join(rows)}){ending}", f"{into} (…){ending}")


def update_of(session: Session, table: Table, names: Sequence[str], columns: Columns) -> LiteralStatement:
    """Return the UPDATE of rows by the first column, the id."""
    ids, *others = _literals(session, columns)
    sets: list[str] = []
    for name, column in zip(names[1:], others, strict=True):
        if column.count(column[0]) == len(column):
            sets.append(f"{name} = {column[0]}")
        else:
            cases = " ".join(
                [f"WHEN {row_id} THEN {value}" for row_id, value in zip(ids, column, strict=True)]
            )
            sets.append(f"{name} = CASE id {cases} END")
    text = f"UPDATE {table.name} SET {', '.join(sets)} WHERE id IN ({', '.join(ids)})"  # nosec B608  # names from the model
    shown = f"UPDATE {table.name} SET {', '.join([f'{name} = …' for name in names[1:]])} WHERE id IN (…)"  # nosec B608
    return LiteralStatement(text, shown)


def _literals(session: Session, columns: Columns) -> list[list[str]]:
    raw: Any = session.connection().connection.driver_connection
    escape: Callable[[Any], str] = raw.escape
    written: list[list[str]] = []
    for column in columns:
        if column.count(column[0]) == len(column):
            written.append([escape(column[0])] * len(column))
        elif set(map(type, column)) == {int}:
            written.append(list(map(str, column)))
        else:
            written.append(list(map(escape, column)))
    return written
