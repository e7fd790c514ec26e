"""Rows for MySQL and MariaDB: statements with all values in their text, where drivers put all parameters.

They would look at each value anew; here those of a column are written together.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Table
from sqlalchemy.orm import Session

from app.database.mysql_drivers import literals_of
from app.database.rows.columns import Columns, is_constant
from app.database.sql import direct

#: rows of one INSERT, and of one UPDATE … CASE
INSERT_ROWS, CASE_ROWS = 500, 200
#: characters of the values of one statement: four bytes each are a fourth of what servers take by default
TEXT_MAX = 1_000_000

Literals = Sequence[Sequence[str]]


def insert(session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
    """Insert the rows."""
    for part in _parts(_literals(session, columns), INSERT_ROWS):
        _insert(session, table, names, part)


def insert_with_ids(session: Session, table: Table, names: Sequence[str], columns: Columns) -> list[int]:
    """Insert the rows; return their ids, which those of a statement get ascending, in their order."""
    returns_ids = session.get_bind().dialect.insert_executemany_returning  # MariaDB, not MySQL
    ids: list[int] = []
    for part in _parts(_literals(session, columns), INSERT_ROWS):
        if returns_ids:
            ids += sorted(int(row[0]) for row in _insert(session, table, names, part, " RETURNING id"))
        else:
            _insert(session, table, names, part)
            ids += _last_ids(session, len(part[0]))
    return ids


def _last_ids(session: Session, count: int) -> Iterable[int]:
    """Return the ids of the last INSERT of the connection.

    MySQL reserves those of all rows of a ``VALUES`` list at once, whatever ``innodb_autoinc_lock_mode`` is.
    """
    ((first, step),) = direct.execute(
        session, "SELECT LAST_INSERT_ID(), @@SESSION.auto_increment_increment", ()
    )
    return range(first, first + count * step, step)


def update(session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
    """Update the rows by the first column, the id."""
    shown = f"UPDATE {table.name} SET {' = …, '.join(names[1:])} = … WHERE id IN (…)"  # nosec B608  # names from the model
    for ids, *others in _parts(_literals(session, columns), CASE_ROWS):
        sets = ", ".join(
            f"{name} = {_by_id(ids, column)}" for name, column in zip(names[1:], others, strict=True)
        )
        statement = f"UPDATE {table.name} SET {sets} WHERE id IN ({', '.join(ids)})"  # nosec B608  # names from the model
        direct.execute_literal(session, statement, shown)


def _insert(
    session: Session, table: Table, names: Sequence[str], part: Literals, ending: str = ""
) -> Sequence[Sequence[Any]]:
    """Insert rows with one statement; return what it returns."""
    into = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES"
    rows = "), (".join(map(", ".join, zip(*part, strict=True)))
    return direct.execute_literal(session, f"{into} ({rows}){ending}", f"{into} (…){ending}")


def _by_id(ids: Sequence[str], column: Sequence[str]) -> str:
    if is_constant(column):
        return column[0]
    cases = " ".join([f"WHEN {row_id} THEN {value}" for row_id, value in zip(ids, column, strict=True)])
    return f"CASE id {cases} END"


def _parts(literals: Literals, rows_max: int) -> Iterator[Literals]:
    """Yield parts of at most so many rows and TEXT_MAX characters, but at least one row."""
    count, length = len(literals[0]), sum(sum(map(len, column)) for column in literals)
    if count <= rows_max and length <= TEXT_MAX:
        yield literals
        return
    start = length = 0
    for end, row in enumerate(zip(*literals, strict=True)):
        row_length = sum(map(len, row))
        if end > start and (end - start == rows_max or length + row_length > TEXT_MAX):
            yield [column[start:end] for column in literals]
            start, length = end, 0
        length += row_length
    yield [column[start:] for column in literals]


def _literals(session: Session, columns: Columns) -> list[list[str]]:
    escape = literals_of(session.connection().connection.driver_connection)
    written: list[list[str]] = []
    for column in columns:
        if is_constant(column):
            written.append([escape(column[0])] * len(column))
        elif set(map(type, column)) == {int}:
            written.append(list(map(str, column)))
        else:
            written.append(list(map(escape, column)))
    return written
