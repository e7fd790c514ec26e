"""Dialect: interface for the differences between databases, with one implementation for each kind.

Statements that every database takes stand in ``app.store``. A dialect has no state; what depends on a
connection is given to its methods. The suite in ``tests/database/conformance.py`` is what one has to pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from sqlalchemy import Connection, Delete, Engine, Insert, Table, delete
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningDelete

from app.database.dialects.columns import Columns
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.settings.config import Config


class AdvisoryLock(NamedTuple):
    """Lock of a server that ends with its connection: calls of functions with the parameter ``:key``."""

    #: true if the lock was free or is held already
    take: str
    free: str
    key: int | str


class Dialect(ABC):
    """Database of one kind; None for a statement means that this kind needs or has none."""

    #: SQLAlchemy's name of it, which manifests of backups have
    name: str

    # --- connections

    #: arguments of the driver for connections that are closed after use, whatever the settings are
    plain_arguments: Mapping[str, Any] = {}
    #: options of ``make_engine`` for an engine whose transactions are all read-only
    read_only_options: Mapping[str, Any] = {}

    @abstractmethod
    def engine_options(self, config: Config) -> dict[str, Any]:
        """Return the options of ``create_engine``, among them ``connect_args``; ``watch`` completes them."""

    @abstractmethod
    def watch(self, engine: Engine, config: Config) -> None:
        """Set up, check and end the connections of an engine; does nothing the second time."""

    def require_usable(self, connection: Connection) -> None:
        """Raise NotConfigured if a server or the pooler in front of it is of no use; may open connections."""
        return

    @abstractmethod
    def single_transaction(self, connection: Any, *, is_writing: bool) -> AbstractContextManager[None]:
        """Return the context in which the only statement of a transaction is executed by the driver.

        With as few round trips as the driver allows; nothing is left open or uncommitted behind it.
        """

    # --- questions to the database

    #: SELECT of the server's clock in epoch milliseconds
    clock_statement: str | None
    #: SELECT of its version, as it calls itself
    version_statement: str
    #: SELECT of the number of connections it accepts
    connections_max_statement: str | None
    #: SELECT of the number of other connections that the same user has to the database
    other_sessions_statement: str | None
    #: SELECT of the schema that tables without one are in, where a database has several
    namespace_statement: str | None = None
    #: the value of ``table_schema`` in ``information_schema`` for own tables
    own_schema: str | None

    # --- capabilities, where the shape of a statement or the order of steps differs

    #: a list as parameter can be joined with tables, and each of its values with a limited subquery
    joins_lists: bool = False
    #: the driver reads one text per row much faster than several columns
    reads_texts_faster: bool = False
    #: the newest row of an index costs as much as all equal ones on the same page of it
    reads_index_pages: bool = False
    #: the character NUL can be stored in texts
    stores_nul: bool = True
    #: a change of a column's type replaces its character set, NOT NULL and comment, too
    replaces_attributes: bool = False
    #: a transaction can undo DROP TABLE and CREATE TABLE
    undoes_table_changes: bool = True

    # --- backups

    #: name of the copy of a database in a backup
    copy_name: str = "database.sql"
    #: dumps are made by ``pg_dump`` for ``psql``: with COPY, and in one transaction
    dumps_for_psql: bool = False
    #: options of CREATE DATABASE for all characters, whatever the server's default is
    create_options: str = ""

    # --- rows, given as columns of values as the driver expects them

    @abstractmethod
    def insert_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Insert rows with the columns ``names``."""

    @abstractmethod
    def insert_with_ids(
        self, session: Session, table: Table, names: Sequence[str], columns: Columns
    ) -> list[int]:
        """Insert rows with the columns ``names``; return their ids, ascending in the order of the rows."""

    @abstractmethod
    def update_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Update rows by the first column, the id."""

    def insert_ignoring(self, table: Table) -> Insert:
        """Return the INSERT of many rows that leaves out those that would violate a unique key."""
        return _insert_ignoring(self.name, table)

    @abstractmethod
    def insert_if_absent(self, table: Table) -> Insert:
        """Return the INSERT of one row, which counts 0 if the row would violate a unique key."""

    def upsert(self, table: Table, names: Sequence[str], key: Sequence[str]) -> Insert:
        """Return the INSERT that updates the columns ``names`` of rows whose unique ``key`` exists."""
        statement = insert_of(self.name, table)
        values = {column: statement.excluded[column] for column in names}
        upserting: Insert = statement.on_conflict_do_update(index_elements=list(key), set_=values)
        return upserting

    # --- deletion by the values of an indexed column, not empty

    def delete_by(self, session: Session, table: Table, column: str, values: Sequence[int]) -> int:
        """Delete the rows with these values; return how many there were."""
        return direct.change(session, _delete(table, column), {WANTED: list(values)})

    def delete_returning(
        self,
        session: Session,
        table: Table,
        column: str,
        values: Sequence[int],
        returned_columns: Sequence[str],
    ) -> Sequence[Sequence[Any]]:
        """Delete the rows with these values; return the ``returned_columns``, perhaps with the id last."""
        return direct.read(session, _delete(table, column, tuple(returned_columns)), {WANTED: list(values)})

    # --- locks

    @abstractmethod
    def advisory_lock(self, connection: Connection, name: str) -> AdvisoryLock | None:
        """Return the lock of this name in the connection's database; None: there are no such locks.

        Ends the transaction. Raises NotConfigured if a pooler would give the lock to whomever comes next.
        """

    @abstractmethod
    def idle_allowance(self, seconds: int) -> str | None:
        """Return the statement that keeps the server from ending an idle connection for so long."""

    @abstractmethod
    def table_wait_limit(self, seconds: int) -> str | None:
        """Return the statement that limits a session's waits for tables."""

    def allow_zero_dates(self, connection: Connection) -> bool:
        """Let the session rebuild tables with dates such as 0000-00-00; return whether that was needed."""
        return False

    # --- ids that a table has used

    @abstractmethod
    def last_id(self, connection: Connection, table: str) -> int:
        """Return the highest id that a table has given, also of rows that are gone; 0 if it is not known."""

    @abstractmethod
    def skip_ids(self, connection: Connection, table: str, last: int, row: Mapping[str, int]) -> None:
        """Continue the ids of a table after ``last``, without an end of the transaction.

        ``row``: values for all other columns without a default.
        """

    @abstractmethod
    def continue_ids(self, connection: Connection, table: str, last: int) -> None:
        """Continue the ids of a table after ``last``, or its highest id; may end the transaction."""

    # --- servers: products, columns, rights, connections

    def product(self, version: str) -> str:
        """Return the name of the product with this version, in small letters."""
        return self.name

    def is_mysql(self, connection: Connection) -> bool:
        """Return whether the server is MySQL itself, not MariaDB."""
        return False

    @abstractmethod
    def widening(self, table: str, column: str, *, characters: int, octets: int) -> str | None:
        """Return the statement after which a column holds texts of so many characters and bytes."""

    @abstractmethod
    def scratch_grant(self, url: URL, prefix: str) -> str | None:
        """Return the statement that lets the URL's user create databases whose names begin so."""

    def exact_arguments(self) -> dict[str, Any] | None:
        """Return arguments of the driver, by which the server refuses values that it would change."""
        return None


def insert_of(name: str, table: Table) -> Any:
    """Return the INSERT of a dialect; the dialects of other databases are not loaded, they take 3 MB."""
    return import_module(f"sqlalchemy.dialects.{name}").insert(table)


@cache
def _insert_ignoring(name: str, table: Table) -> Insert:
    ignoring: Insert = insert_of(name, table).on_conflict_do_nothing()
    return ignoring


@cache
def _delete(
    table: Table, column: str, returned_columns: tuple[str, ...] = ()
) -> Delete | ReturningDelete[Any]:
    statement = delete(table).where(among(table.c[column]))
    if returned_columns:
        return statement.returning(*[table.c[name] for name in returned_columns])
    return statement
