"""Bulk statements; the one place that handles differences between the databases.

Measured (docs/reference/pipeline.md, section 10): MySQL drivers do not batch UPDATE, and SQLite cannot return
the ids of many rows in order. Rows go to the SQLite driver as tuples, because SQLAlchemy builds a dictionary
of parameters per row, which takes a quarter of the time of a claim or callback. PostgreSQL gets one array per
column: one statement instead of one per row.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from operator import itemgetter
from typing import Any, cast

from sqlalchemy import (
    CompoundSelect,
    CursorResult,
    Dialect,
    Insert,
    Select,
    String,
    Table,
    Update,
    bindparam,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.engine import Row as SqlRow
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeEngine

from app.models.base import Base
from app.store import driver
from app.store.among import WANTED, among

Row = dict[str, Any]
#: rows of one UPDATE … CASE on MySQL
CASE_ROWS = 200
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
    """Return plain rows of a statement made once, whose only parameter is ``among``; texts and numbers."""
    return read_made(session, statement, {WANTED: list(values)})


def read_made(session: Session, statement: Select[Any], parameters: Row) -> Sequence[Sequence[Any]]:
    """Return plain rows of a statement made once; its columns and parameters are texts and numbers."""
    if driver.is_sqlite(session):
        return driver.read(session, statement, parameters)
    return read_rows(session, statement, parameters)


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
    connection, names, ids = session.connection(), [*rows[0]], list[int]()
    columns_text, marks = ", ".join(names), ", ".join(["%s"] * len(names))
    values = list(zip(*_columns(table, names, rows, connection.dialect), strict=True))
    for start in range(0, len(values), INSERT_ROWS):
        group = values[start : start + INSERT_ROWS]
        rows_text = ", ".join([f"({marks})"] * len(group))
        statement = f"INSERT INTO {table.name} ({columns_text}) VALUES {rows_text} RETURNING id"  # nosec B608  # names from the model
        given = connection.exec_driver_sql(statement, tuple(chain.from_iterable(group)))
        ids += sorted(int(row[0]) for row in given)
    return ids


_LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = ?"


def _insert_sqlite(session: Session, table: Table, rows: Sequence[Row]) -> list[int]:
    # the transaction started as IMMEDIATE, so no other can take these ids
    found = driver.execute(session, _LAST_ID, (table.name,))
    last = found[0][0] if found else session.execute(select(func.max(table.c.id))).scalar() or 0
    ids = list(range(last + 1, last + 1 + len(rows)))
    names = [*rows[0]]
    columns_text, marks = ", ".join(["id", *names]), ", ".join("?" * (1 + len(names)))
    statement = f"INSERT INTO {table.name} ({columns_text}) VALUES ({marks})"  # nosec B608  # names from the model
    columns = _columns(table, names, rows, session.get_bind().dialect)
    driver.execute_many(session, statement, list(zip(ids, *columns, strict=True)))
    return ids


def _insert_from_arrays(session: Session, table: Table, rows: Sequence[Row]) -> list[int]:
    """Insert rows as one array per column, with ids from the sequence of the table."""
    connection, names = session.connection(), [*rows[0]]
    given = connection.execute(_NEXT_IDS, {"table": table.name, "count": len(rows)})
    ids = sorted(int(row[0]) for row in given)
    columns = _columns(table, names, rows, connection.dialect)
    arrays = _arrays_of(table, ["id", *names], connection.dialect)
    columns_text = ", ".join(["id", *names])
    statement = f"INSERT INTO {table.name} ({columns_text}) SELECT * FROM unnest({arrays})"  # nosec B608  # names from the model
    connection.exec_driver_sql(statement, (ids, *columns))
    return ids


_NEXT_IDS = text("SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)")


def insert_many(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns."""
    if rows:
        session.connection().execute(_insert(table_of(model)), list(rows))


def insert_whole(session: Session, model: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, the others with the defaults of the database."""
    if not driver.is_sqlite(session):
        insert_many(session, model, rows)
    elif rows:
        table, names = table_of(model), list(rows[0])
        columns = _columns(table, names, rows, session.get_bind().dialect)
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
    table = table_of(model)
    names = [name for name in rows[0] if name != "id"]
    ordered = sorted(rows, key=itemgetter("id"))
    dialect = session.get_bind().dialect
    if dialect.name == "mysql":
        for start in range(0, len(ordered), CASE_ROWS):
            _update_by_case(session, table, names, ordered[start : start + CASE_ROWS])
        return
    if dialect.name == "postgresql":
        _update_from_arrays(session, table, ["id", *names], ordered)
        return
    sets = ", ".join(f"{name} = ?" for name in names)
    statement = f"UPDATE {table.name} SET {sets} WHERE id = ?"  # nosec B608  # names from the model
    columns = _columns(table, [*names, "id"], ordered, dialect)
    driver.execute_many(session, statement, list(zip(*columns, strict=True)))


def update_equally(session: Session, model: type[Base], ids: Sequence[int], values: Row) -> None:
    """Give rows the same values, of columns that need no conversion. The caller holds their locks."""
    if ids:
        changed = _update_equally(table_of(model), tuple(values))
        given = {f"new_{name}": value for name, value in values.items()} | {WANTED: list(ids)}
        if driver.is_sqlite(session):
            driver.read(session, changed, given)
        else:
            session.connection().execute(changed, given)


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


def _update_from_arrays(session: Session, table: Table, names: Sequence[str], rows: Sequence[Row]) -> None:
    dialect = session.get_bind().dialect
    arrays = _arrays_of(table, names, dialect)
    sets = ", ".join(f"{name} = given.{name}" for name in names[1:])
    given = f"unnest({arrays}) AS given({', '.join(names)})"
    matching = f"{table.name}.id = given.id"
    statement = f"UPDATE {table.name} SET {sets} FROM {given} WHERE {matching}"  # nosec B608  # names from the model
    session.connection().exec_driver_sql(statement, tuple(_columns(table, names, rows, dialect)))


def _arrays_of(table: Table, names: Sequence[str], dialect: Dialect) -> str:
    return ", ".join(f"%s::{_array_type(table.c[name].type, dialect)}[]" for name in names)


def _array_type(column_type: TypeEngine[Any], dialect: Dialect) -> str:
    """Return the array type for a column.

    TEXT for strings, since a cast to VARCHAR(n) would cut them silently.
    """
    return "TEXT" if isinstance(column_type, String) else column_type.compile(dialect)


def _update_by_case(session: Session, table: Table, names: list[str], rows: Sequence[Row]) -> None:
    ids, *columns = _columns(table, ["id", *names], rows, session.get_bind().dialect)
    sets, values = list[str](), list[Any]()
    for name, column in zip(names, columns, strict=True):
        if column.count(column[0]) == len(column):
            sets.append(f"{name} = %s")
            values.append(column[0])
        else:
            sets.append(f"{name} = CASE id {'WHEN %s THEN %s ' * len(ids)}END")
            values += [part for pair in zip(ids, column, strict=True) for part in pair]
    assigned, marks = ", ".join(sets), ", ".join(["%s"] * len(ids))
    statement = f"UPDATE {table.name} SET {assigned} WHERE id IN ({marks})"  # nosec B608  # names from the model
    session.connection().exec_driver_sql(statement, (*values, *ids))
