"""Dialect of PostgreSQL: rows as one array per column, and a single value where all rows have the same."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Insert, String, Table, text
from sqlalchemy import Dialect as SqlDialect
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeEngine

from app.database.connections import postgresql as connections
from app.database.connections import servers
from app.database.dialects.base import AdvisoryLock, Dialect, insert_of
from app.database.dialects.columns import Columns, is_constant
from app.database.list_parameters import list_of
from app.database.sql import direct
from app.settings.config import Config

#: characters of VARCHAR up to which it is advised; TEXT has no limit
VARCHAR_MAX = 1_000


class _RowSource(NamedTuple):
    """Rows of a statement: expressions of their columns, and the FROM clause with ``place``, their order."""

    expressions: Sequence[str]
    source: str
    #: parameters of a statement with all expressions, in order, before the source
    values: Sequence[Any]


class PostgreSql(Dialect):
    """PostgreSQL, also behind a pooler."""

    name = "postgresql"
    plain_arguments = connections.PLAIN_ARGUMENTS
    # Each BEGIN requests it, as poolers accept no ``options`` and clients may demand a server for writing.
    read_only_options = {"execution_options": {"postgresql_readonly": True}}
    clock_statement = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    version_statement = "SHOW server_version"
    connections_max_statement = "SHOW max_connections"
    other_sessions_statement = (
        "SELECT COUNT(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = session_user"
    )
    namespace_statement = "SELECT current_schema()"
    own_schema = "CURRENT_SCHEMA()"
    joins_lists = True
    reads_index_pages = True
    stores_nul = False
    dumps_for_psql = True
    create_options = " ENCODING 'UTF8' TEMPLATE template0"

    def engine_options(self, config: Config) -> dict[str, Any]:
        """Return the options for psycopg."""
        return servers.OPTIONS | {"connect_args": connections.driver_arguments(config)}

    def watch(self, engine: Engine, config: Config) -> None:
        """Watch the connections of a server."""
        servers.watch(engine, connections.PostgreSqlConnections, config.database_answer_s)

    def require_usable(self, connection: Connection) -> None:
        """Check the version, the encoding of the database and the pooler."""
        connections.require_usable(connection)

    @contextmanager
    def single_transaction(self, connection: Any, *, is_writing: bool) -> Iterator[None]:
        """Let psycopg send no BEGIN; without it, the server commits the statement by itself."""
        connection.autocommit = True
        try:
            yield
        finally:
            if not connection.closed:
                connection.autocommit = False

    def insert_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Insert all rows with one statement."""
        statement, values = _insert(session, table, names, columns)
        direct.execute(session, statement, values)

    def insert_with_ids(
        self, session: Session, table: Table, names: Sequence[str], columns: Columns
    ) -> list[int]:
        """Insert the rows; return their ids in order: defaults are computed after the ORDER BY."""
        statement, values = _insert(session, table, names, columns)
        rows = direct.execute(session, f"{statement} ORDER BY given.place RETURNING id", values)
        return sorted(int(row[0]) for row in rows)

    def update_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Update all rows with one statement."""
        source = _given_rows(table, names, columns, session.get_bind().dialect)
        pairs = zip(names[1:], source.expressions[1:], strict=True)
        sets = ", ".join(f"{name} = {expression}" for name, expression in pairs)
        matching = f"{table.name}.id = given.id"
        # The names are those of the model.
        statement = f"UPDATE {table.name} SET {sets} FROM {source.source} WHERE {matching}"  # nosec B608
        direct.execute(session, statement, source.values)

    def insert_if_absent(self, table: Table) -> Insert:
        """Return INSERT … ON CONFLICT DO NOTHING, which counts its rows."""
        return _insert_one(table)

    def advisory_lock(self, connection: Connection, name: str) -> AdvisoryLock:
        """Return a lock by a number; each database has its own."""
        connections.require_session(connection)
        connection.rollback()
        key = int.from_bytes(sha256(name.encode()).digest()[:7], "big")
        return AdvisoryLock("pg_try_advisory_lock(:key)", "pg_advisory_unlock(:key)", key)

    def idle_allowance(self, seconds: int) -> str:
        """Return the statement that ends the limit, which 13 and older servers do not have."""
        return (
            "SELECT set_config('idle_session_timeout', '0', false)"
            " WHERE current_setting('idle_session_timeout', true) IS NOT NULL"
        )

    def table_wait_limit(self, seconds: int) -> str:
        """Return the statement that sets the wait for all locks."""
        return f"SET lock_timeout = '{seconds:d}s'"

    def last_id(self, connection: Connection, table: str) -> int:
        """Return the last value of the sequence."""
        sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": table})
        return connection.scalar(text(f"SELECT last_value FROM {sequence}")) or 0  # nosec B608

    def skip_ids(self, connection: Connection, table: str, last: int, row: Mapping[str, int]) -> None:
        """Set the sequence, which no rollback takes back."""
        sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": table})
        connection.execute(text("SELECT setval(:sequence, :last)"), {"sequence": sequence, "last": last})

    def continue_ids(self, connection: Connection, table: str, last: int) -> None:
        """Set the sequence, unless ``last`` is 0, which it does not take."""
        if last:
            sequence = f"pg_get_serial_sequence('{table}', 'id')"
            connection.execute(text(f"SELECT setval({sequence}, {last:d})"))

    def widening(self, table: str, column: str, *, characters: int, octets: int) -> str:
        """Return the statement with the type TEXT for long texts."""
        wide = f"varchar({characters})" if characters <= VARCHAR_MAX else "text"
        return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wide}"

    def scratch_grant(self, url: URL, prefix: str) -> str:
        """Return the statement for the right to create databases of any name."""
        return f"ALTER ROLE {url.username} CREATEDB"


@cache
def _insert_one(table: Table) -> Insert:
    insert: Insert = insert_of("postgresql", table).on_conflict_do_nothing()
    return insert.inline().execution_options(preserve_rowcount=True)


def _insert(
    session: Session, table: Table, names: Sequence[str], columns: Columns
) -> tuple[str, Sequence[Any]]:
    source = _given_rows(table, names, columns, session.get_bind().dialect)
    column_names, expressions = ", ".join(names), ", ".join(source.expressions)
    # The names are those of the model.
    selection = f"SELECT {expressions} FROM {source.source}"  # nosec B608
    statement = f"INSERT INTO {table.name} ({column_names}) {selection}"  # nosec B608
    return statement, source.values


def _given_rows(table: Table, names: Sequence[str], columns: Columns, dialect: SqlDialect) -> _RowSource:
    """Return the rows; the first column is always an array."""
    expressions, arrays, marks = list[str](), list[str](), list[str]()
    single, lists = list[Any](), list[Any]()
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        mark = f"%s::{_type_name(table.c[name].type, dialect)}"
        if place and is_constant(column):
            expressions.append(mark)
            single.append(column[0])
        else:
            expressions.append(f"given.{name}")
            arrays.append(name)
            marks.append(f"{mark}[]")
            lists.append(list_of(column))
    source = f"unnest({', '.join(marks)}) WITH ORDINALITY AS given({', '.join(arrays)}, place)"
    return _RowSource(expressions, source, (*single, *lists))


def _type_name(column_type: TypeEngine[Any], dialect: SqlDialect) -> str:
    """Return the type for a column: TEXT for strings, since a cast to VARCHAR(n) would cut them silently."""
    return "TEXT" if isinstance(column_type, String) else column_type.compile(dialect)
