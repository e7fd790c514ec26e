"""Bulk statements; the one place that handles differences between the databases.

Measured (docs/reference/pipeline.md, section 10): MySQL drivers do not batch UPDATE, and SQLite cannot return
the ids of many rows in order. Rows go to the SQLite driver as tuples, because SQLAlchemy builds a dictionary
of parameters per row, which takes a quarter of the time of a claim or callback. PostgreSQL gets one array per
column: one statement instead of one per row (``array_rows``). MySQL and MariaDB get the values in the text
(``literal_rows``).
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from operator import itemgetter
from typing import Any, cast

from sqlalchemy import (
    CompoundSelect,
    CursorResult,
    Dialect,
    Insert,
    Select,
    Table,
    Update,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.engine import Row as SqlRow
from sqlalchemy.orm import Session

from app.models.base import Base
from app.store import driver, literal_rows
from app.store.among import WANTED, among
from app.store.array_rows import given_rows

Row = dict[str, Any]
#: rows of one UPDATE … CASE on MySQL
CASE_ROWS = 200
#: characters, of up to four bytes, of a statement of several rows on MySQL: 5.7 ends the connection of one
#: over 4 MiB
LITERALS_MAX = 1_000_000
#: rows of one INSERT on MariaDB
INSERT_ROWS = 500


def table_of(model: type[Base]) -> Table:
    """Return the table of a model."""
    table = model.__table__
    assert isinstance(table, Table)
    return table


def read_rows(
    session: Session, statement: Select[Any] | CompoundSelect[Any], parameters: Row | None = None
) -> Sequence[SqlRow[Any]]:
    """Return plain rows, without the ORM's loading, which costs a claim as much as the query itself."""
    session.flush()
    return session.connection().execute(statement, parameters).all()


def read_among(
    session: Session, statement: Select[Any], values: Sequence[int] | Sequence[str]
) -> Sequence[Sequence[Any]]:
    """Return plain rows of a statement made once, whose only parameter is ``among``."""
    return read_made(session, statement, {WANTED: list(values)})


def read_made(session: Session, statement: Select[Any], parameters: Row) -> Sequence[Sequence[Any]]:
    """Return plain rows of a statement made once."""
    return driver.read(session, statement, parameters)


def insert_with_ids(session: Session, model: type[Base], rows: Sequence[Row]) -> list[int]:
    """Insert rows with the same columns; return their new ids, in the order of the rows."""
    if not rows:
        return []
    table, dialect = table_of(model), session.get_bind().dialect
    if dialect.name == "sqlite":
        return _insert_sqlite(session, table, rows)
    if dialect.name == "postgresql":
        return _insert_from_arrays(session, table, rows)
    if dialect.insert_executemany_returning:
        return _insert_returning(session, table, rows)
    single = [cast("CursorResult[Any]", session.execute(insert(table).values(row))) for row in rows]
    return [int(result.inserted_primary_key[0]) for result in single if result.inserted_primary_key]


def _insert_returning(session: Session, table: Table, rows: Sequence[Row]) -> list[int]:
    """Insert rows on MariaDB, which gives the rows of a statement ascending ids in their order."""
    ids: list[int] = []
    for start in range(0, len(rows), INSERT_ROWS):
        found = _insert_literals(session, table, rows[start : start + INSERT_ROWS], " RETURNING id")
        ids += sorted(int(row[0]) for row in found)
    return ids


def _insert_literals(
    session: Session, table: Table, rows: Sequence[Row], ending: str = ""
) -> Sequence[Sequence[Any]]:
    names = [*rows[0]]
    columns = _columns(table, names, rows, session.get_bind().dialect)
    statement = literal_rows.insert_of(session, table, names, columns, ending)
    if len(statement.text) <= LITERALS_MAX or len(rows) == 1:
        return driver.execute_literal(session, statement)
    middle = len(rows) // 2
    halves = (rows[:middle], rows[middle:])
    return [row for half in halves for row in _insert_literals(session, table, half, ending)]


_LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"


def _insert_sqlite(session: Session, table: Table, rows: Sequence[Row]) -> list[int]:
    # the transaction started as IMMEDIATE, so no other can take these ids
    found = driver.execute(session, _LAST_ID, (table.name,))
    last = found[0][0] if found else session.execute(select(func.max(table.c.id))).scalar() or 0
    ids = list(range(last + 1, last + 1 + len(rows)))
    names = [*rows[0]]
    columns = _columns(table, names, rows, session.get_bind().dialect)
    driver.execute_many(session, _insert_text(table, ["id", *names]), list(zip(ids, *columns, strict=True)))
    return ids


def _insert_from_arrays(session: Session, table: Table, rows: Sequence[Row]) -> list[int]:
    """Insert rows on PostgreSQL, which computes defaults, such as the next id, after the ORDER BY."""
    found = _insert_arrays(session, table, rows, "ORDER BY given.place RETURNING id")
    return sorted(int(row[0]) for row in found)


def _insert_arrays(
    session: Session, table: Table, rows: Sequence[Row], ending: str = ""
) -> Sequence[Sequence[Any]]:
    dialect, names = session.get_bind().dialect, [*rows[0]]
    given = given_rows(table, names, _columns(table, names, rows, dialect), dialect)
    columns_text, selected = ", ".join(names), ", ".join(given.expressions)
    statement = f"INSERT INTO {table.name} ({columns_text}) SELECT {selected} FROM {given.source} {ending}"  # nosec B608  # names from the model
    return driver.execute(session, statement, given.values)


def insert_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns."""
    if rows:
        session.connection().execute(_insert(table_of(model)), list(rows))


def insert_whole(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, the others with the defaults of the database."""
    if not rows:
        return
    table, names, dialect = table_of(model), [*rows[0]], session.get_bind().dialect
    if dialect.name == "postgresql":
        _insert_arrays(session, table, rows)
    elif dialect.name == "mysql":
        _insert_literals(session, table, rows)
    else:
        columns = _columns(table, names, rows, dialect)
        driver.execute_many(session, _insert_text(table, names), list(zip(*columns, strict=True)))


def _insert_text(table: Table, names: Sequence[str]) -> str:
    columns, marks = ", ".join(names), ", ".join("?" * len(names))
    return f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"  # nosec B608  # names from the model


@cache
def _insert(table: Table) -> Insert:
    return insert(table)


def insert_ignore(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, except those that would violate a unique key."""
    if rows:
        connection = session.connection()
        connection.execute(_insert_unless_present(table_of(model), connection.dialect.name), list(rows))


def insert_if_absent(session: Session, model: type[Base], row: Row) -> bool:
    """Insert a row unless it would violate a unique key; waits for another transaction that inserts it."""
    session.flush()
    connection = session.connection()
    return connection.execute(_insert_if_absent(table_of(model), connection.dialect.name), row).rowcount == 1


@cache
def _insert_if_absent(table: Table, dialect: str) -> Insert:
    # SQLAlchemy compiles the inserts of its dialects anew each time, but not those of SQLite and MySQL here
    added: Insert
    added = _insert_of(dialect, table).on_conflict_do_nothing() if dialect == "postgresql" else insert(table)
    added = added.prefix_with("OR IGNORE", dialect="sqlite").prefix_with("IGNORE", dialect="mysql")
    return added.inline().execution_options(preserve_rowcount=True)


@cache
def _insert_unless_present(table: Table, name: str) -> Insert:
    added: Any = _insert_of(name, table)
    ignoring: Insert = added.prefix_with("IGNORE") if name == "mysql" else added.on_conflict_do_nothing()
    return ignoring


def _insert_of(dialect: str, table: Table) -> Any:
    """Return the INSERT of a dialect; the dialects of other databases are not loaded, they take 3 MB."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


def upsert(session: Session, model: type[Base], rows: Sequence[Row], *, key: Sequence[str]) -> None:
    """Insert rows with the same columns; update those whose ``key``, which must be unique, exists."""
    if not rows:
        return
    table, name = table_of(model), session.get_bind().dialect.name
    names = [column for column in rows[0] if column not in key]
    # concurrent writers of the same rows lock them in the same order
    ordered = sorted(rows, key=itemgetter(*key))
    statement = _insert_of(name, table)
    if name == "mysql":
        session.execute(
            statement.on_duplicate_key_update({column: statement.inserted[column] for column in names}),
            ordered,
        )
        return
    session.execute(
        statement.on_conflict_do_update(
            index_elements=list(key), set_={column: statement.excluded[column] for column in names}
        ),
        ordered,
    )


def update_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Update rows by ``id``; all have the same columns. The caller holds their locks."""
    if not rows:
        return
    table, dialect = table_of(model), session.get_bind().dialect
    names = ["id", *(name for name in rows[0] if name != "id")]
    ordered = sorted(rows, key=itemgetter("id"))
    if dialect.name == "mysql":
        for start in range(0, len(ordered), CASE_ROWS):
            _update_literals(session, table, names, ordered[start : start + CASE_ROWS])
        return
    ids, *columns = _columns(table, names, ordered, dialect)
    if dialect.name == "postgresql":
        _update_from_arrays(session, table, names, [ids, *columns])
        return
    sets = ", ".join(f"{name} = ?" for name in names[1:])
    statement = f"UPDATE {table.name} SET {sets} WHERE id = ?"  # nosec B608  # names from the model
    driver.execute_many(session, statement, list(zip(*columns, ids, strict=True)))


def update_equally(session: Session, model: type[Base], ids: Sequence[int], values: Row) -> None:
    """Give rows the same values, of columns that need no conversion. The caller holds their locks."""
    if ids:
        changed = _update_equally(table_of(model), tuple(values))
        given = {f"new_{name}": value for name, value in values.items()} | {WANTED: list(ids)}
        driver.change(session, changed, given)


@cache
def _update_equally(table: Table, names: tuple[str, ...]) -> Update:
    return update(table).where(among(table.c.id)).values({name: bindparam(f"new_{name}") for name in names})


def _columns(table: Table, names: Sequence[str], rows: Sequence[Row], dialect: Dialect) -> list[list[Any]]:
    """Return the values of each column as the driver expects them."""
    columns: list[list[Any]] = []
    for name in names:
        values = list(map(itemgetter(name), rows))
        process = table.c[name].type.dialect_impl(dialect).bind_processor(dialect)
        if process is not None and values.count(values[0]) == len(values):  # such as the time of a claim
            values = [process(values[0])] * len(values)
        elif process is not None:
            values = list(map(process, values))
        columns.append(values)
    return columns


def _update_literals(session: Session, table: Table, names: Sequence[str], rows: Sequence[Row]) -> None:
    columns = _columns(table, names, rows, session.get_bind().dialect)
    statement = literal_rows.update_of(session, table, names, columns)
    if len(statement.text) <= LITERALS_MAX or len(rows) == 1:
        driver.execute_literal(session, statement)
        return
    middle = len(rows) // 2
    for half in (rows[:middle], rows[middle:]):
        _update_literals(session, table, names, half)


def _update_from_arrays(
    session: Session, table: Table, names: Sequence[str], columns: Sequence[Sequence[Any]]
) -> None:
    given = given_rows(table, names, columns, session.get_bind().dialect)
    pairs = zip(names[1:], given.expressions[1:], strict=True)
    sets = ", ".join(f"{name} = {expression}" for name, expression in pairs)
    matching = f"{table.name}.id = given.id"
    statement = f"UPDATE {table.name} SET {sets} FROM {given.source} WHERE {matching}"  # nosec B608  # names from the model
    driver.execute(session, statement, given.values)
