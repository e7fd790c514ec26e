"""Dialect of MySQL and MariaDB: rows in statements with all values in their text.

Drivers put all parameters into the text, too, but look at each value anew; here those of a column are
written together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Engine, Insert, Select, Table, insert, select, text
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session

from app.database.connections import mysql as connections
from app.database.connections import servers
from app.database.connections.mysql_drivers import literals_of
from app.database.dialects.base import AdvisoryLock, Dialect, insert_of
from app.database.dialects.columns import Columns, is_constant
from app.database.list_parameters import list_of
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.settings.config import Config

#: rows of one INSERT, and of one UPDATE … CASE
INSERT_ROWS, CASE_ROWS = 500, 200
#: characters of the values of one statement: four bytes each are a fourth of what servers take by default
TEXT_MAX = 1_000_000
#: characters of VARCHAR up to which it is advised; longer texts are advised as one of TEXTS
VARCHAR_MAX = 1_000
#: type -> most bytes
TEXTS = {"text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
#: modes of MySQL that refuse dates such as 0000-00-00; the last one includes the others
ZERO_DATE_MODES = ("NO_ZERO_DATE", "NO_ZERO_IN_DATE", "TRADITIONAL")
#: errors instead of cut texts; ids are taken as they are
EXACT_MODE = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"

Literals = Sequence[Sequence[str]]


class MySql(Dialect):
    """MySQL, and MariaDB, whose differences stand in the methods."""

    name = "mysql"
    read_only_options = {"connect_args": {"init_command": "SET SESSION TRANSACTION READ ONLY"}}
    # The server's local time is not used, because it is ambiguous for an hour in autumn.
    clock_statement = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
    version_statement = "SELECT VERSION()"
    connections_max_statement = "SELECT @@max_connections"
    other_sessions_statement = (
        "SELECT COUNT(*) FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID() AND user = SUBSTRING_INDEX(USER(), '@', 1)"
    )
    own_schema = "DATABASE()"
    reads_texts_faster = True
    replaces_attributes = True
    undoes_table_changes = False
    create_options = " CHARACTER SET utf8mb4"

    def engine_options(self, config: Config) -> dict[str, Any]:
        """Return the options for PyMySQL or mysqlclient."""
        return servers.OPTIONS | {"connect_args": connections.driver_arguments(config)}

    def watch(self, engine: Engine, config: Config) -> None:
        """Watch the connections of a server."""
        servers.watch(engine, connections.MySqlConnections, config.database_answer_s)

    def require_usable(self, connection: Connection) -> None:
        """Check the product and its version."""
        connections.require_usable(connection)

    @contextmanager
    def single_transaction(self, connection: Any, *, is_writing: bool) -> Iterator[None]:
        """End the transaction that the statement has begun, which PyMySQL does not notice after a SELECT."""
        yield
        if is_writing:
            connection.commit()
        else:
            connection.rollback()

    def insert_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Insert some hundred rows with each statement."""
        for part in _parts(_literals(session, columns), INSERT_ROWS):
            _insert(session, table, names, part)

    def insert_with_ids(
        self, session: Session, table: Table, names: Sequence[str], columns: Columns
    ) -> list[int]:
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

    def update_rows(self, session: Session, table: Table, names: Sequence[str], columns: Columns) -> None:
        """Update some hundred rows with each statement."""
        # The names are those of the model.
        shown_sets = " = …, ".join(names[1:])
        log_text = f"UPDATE {table.name} SET {shown_sets} = … WHERE id IN (…)"  # nosec B608
        for ids, *columns_to_set in _parts(_literals(session, columns), CASE_ROWS):
            sets = ", ".join(
                f"{name} = {_by_id(ids, column)}"
                for name, column in zip(names[1:], columns_to_set, strict=True)
            )
            # The names are those of the model.
            statement = f"UPDATE {table.name} SET {sets} WHERE id IN ({', '.join(ids)})"  # nosec B608
            direct.execute_literal(session, statement, log_text)

    def insert_ignoring(self, table: Table) -> Insert:
        """Return INSERT IGNORE."""
        return _insert_ignore(table)

    def insert_if_absent(self, table: Table) -> Insert:
        """Return INSERT IGNORE, which counts its rows."""
        return _insert_one_ignore(table)

    def upsert(self, table: Table, names: Sequence[str], key: Sequence[str]) -> Insert:
        """Return INSERT … ON DUPLICATE KEY UPDATE, which is for every unique key."""
        statement = insert_of(self.name, table)
        values = {column: statement.inserted[column] for column in names}
        upserting: Insert = statement.on_duplicate_key_update(values)
        return upserting

    def delete_by(self, session: Session, table: Table, column: str, values: Sequence[int]) -> int:
        """Delete the rows by id, with ORDER BY and a LIMIT that excludes nothing.

        These databases prefer to scan a small table, which waits for rows locked by other transactions. This
        makes them use the index.
        """
        if column == "id":
            return _delete_ids(session, table, values)
        rows = direct.read(session, _select_by(table, column, ()), {WANTED: list(values)})
        return _delete_ids(session, table, [row[0] for row in rows])

    def delete_returning(
        self,
        session: Session,
        table: Table,
        column: str,
        values: Sequence[int],
        returned_columns: Sequence[str],
    ) -> Sequence[Sequence[Any]]:
        """Read the rows and delete them by id, which is the last of the columns returned."""
        rows = direct.read(
            session, _select_by(table, column, tuple(returned_columns)), {WANTED: list(values)}
        )
        _delete_ids(session, table, [row[-1] for row in rows])
        return rows

    def advisory_lock(self, connection: Connection, name: str) -> AdvisoryLock:
        """Return a lock by name; names belong to the server, not to a database, and have 64 characters."""
        key = f"{name}_" + sha256((connection.engine.url.database or "").encode()).hexdigest()[:32]
        return AdvisoryLock("GET_LOCK(:key, 0)", "RELEASE_LOCK(:key)", key)

    def idle_allowance(self, seconds: int) -> str:
        """Return the statement that raises ``wait_timeout``."""
        return f"SET SESSION wait_timeout = CAST(GREATEST(@@SESSION.wait_timeout, {seconds:d}) AS UNSIGNED)"

    def table_wait_limit(self, seconds: int) -> str:
        """Return the statement that sets the wait for metadata locks."""
        return f"SET SESSION lock_wait_timeout = {seconds:d}"

    def allow_zero_dates(self, connection: Connection) -> bool:
        """Leave out the modes that refuse them, which are set by default."""
        modes: str = connection.scalar(text("SELECT @@SESSION.sql_mode")) or ""
        new_modes = ",".join(mode for mode in modes.split(",") if mode not in ZERO_DATE_MODES)
        connection.execute(text("SET SESSION sql_mode = :kept"), {"kept": new_modes})
        return True

    def last_id(self, connection: Connection, table: str) -> int:
        """Return the id before the next one."""
        if self.is_mysql(connection):  # MySQL shows numbers of up to a day ago
            connection.execute(text("SET SESSION information_schema_stats_expiry = 0"))
        next_id = connection.scalar(
            text(
                "SELECT auto_increment FROM information_schema.tables"
                " WHERE table_schema = database() AND table_name = :name"
            ),
            {"name": table},
        )
        return (next_id or 1) - 1

    def skip_ids(self, connection: Connection, table: str, last: int, row: Mapping[str, int]) -> None:
        """Insert a row that is deleted at once: ALTER TABLE would end the transaction."""
        columns, values = ", ".join(["id", *row]), ", ".join([":last", *map(str, row.values())])
        statement = f"INSERT INTO {table} ({columns}) VALUES ({values})"  # nosec B608
        connection.execute(text(statement), {"last": last})
        connection.execute(text(f"DELETE FROM {table} WHERE id = :last"), {"last": last})  # nosec B608

    def continue_ids(self, connection: Connection, table: str, last: int) -> None:
        """Change the table, which ends the transaction, if its rows do not have that id."""
        highest = connection.execute(text(f"SELECT MAX(id) FROM {table}")).scalar() or 0  # nosec B608
        if last > highest:  # The change of the table takes some milliseconds.
            connection.execute(text(f"ALTER TABLE {table} AUTO_INCREMENT = {last + 1:d}"))

    def product(self, version: str) -> str:
        """Return ``mariadb`` for its versions, which name it."""
        return "mariadb" if "mariadb" in version.lower() else self.name

    def is_mysql(self, connection: Connection) -> bool:
        """Return whether SQLAlchemy has found another server than MariaDB."""
        return not getattr(connection.dialect, "is_mariadb", False)

    def widening(self, table: str, column: str, *, characters: int, octets: int) -> str:
        """Return the statement with a type that is wide enough for the bytes, or the characters."""
        wide = f"varchar({characters})"
        if characters > VARCHAR_MAX:
            wide = next(kind for kind, most in TEXTS.items() if octets <= most)
        return f"ALTER TABLE {table} MODIFY {column} {wide}"

    def scratch_grant(self, url: URL, prefix: str) -> str:
        """Return the GRANT for a pattern of names."""
        pattern = prefix.replace("_", r"\_")
        return f"GRANT ALL ON `{pattern}%`.* TO '{url.username}'@'%'"

    def exact_arguments(self) -> dict[str, Any]:
        """Return a command at the start of each connection that makes the server strict."""
        return {"init_command": EXACT_MODE}


@cache
def _insert_ignore(table: Table) -> Insert:
    ignoring: Insert = insert_of("mysql", table).prefix_with("IGNORE")
    return ignoring


@cache
def _insert_one_ignore(table: Table) -> Insert:
    # SQLAlchemy compiles the INSERT of MySQL anew each time, but not this
    return insert(table).prefix_with("IGNORE").inline().execution_options(preserve_rowcount=True)


@cache
def _select_by(table: Table, column: str, returned_columns: tuple[str, ...]) -> Select[Any]:
    """Return the rows to be deleted; the last column is the id."""
    columns = [table.c[name] for name in returned_columns]
    return select(*columns, table.c.id).where(among(table.c[column])).order_by(table.c.id)


def _delete_ids(session: Session, table: Table, ids: Sequence[int]) -> int:
    """Delete rows by id; return how many there were."""
    if not ids:
        return 0
    # The names are those of the model.
    statement = f"DELETE FROM {table.name} WHERE id IN %s ORDER BY id LIMIT %s"  # nosec B608
    return direct.change_text(session, statement, (list_of(ids), len(ids)))


def _last_ids(session: Session, count: int) -> Iterable[int]:
    """Return the ids of the last INSERT of the connection.

    MySQL reserves those of all rows of a ``VALUES`` list at once, whatever ``innodb_autoinc_lock_mode`` is.
    """
    ((first, step),) = direct.execute(
        session, "SELECT LAST_INSERT_ID(), @@SESSION.auto_increment_increment", ()
    )
    return range(first, first + count * step, step)


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
    literals: list[list[str]] = []
    for column in columns:
        if is_constant(column):
            literals.append([escape(column[0])] * len(column))
        elif set(map(type, column)) == {int}:
            literals.append(list(map(str, column)))
        else:
            literals.append(list(map(escape, column)))
    return literals
