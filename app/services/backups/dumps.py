"""Copies of a database: create, count and load them.

SQLite by its online backup interface, the servers by their own dump programs. A dump is consistent: one
transaction reads all tables.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from app.database.dialects.choice import dialect_of_url, plain_engine
from app.database.faults import reason_of
from app.database.urls import sqlite_file
from app.errors import NotConfigured
from app.services.backups import client_commands, programs
from app.store.copies import whole_tables

#: the settings at the head of a dump end within so many bytes
HEAD_BYTES = 8_192
#: pg_dump 17 and later write it whatever the server is; ``programs.NO_TIMEOUT`` does the same
_NEWER_SETTING = b"\nSET transaction_timeout = 0;\n"
_FIRST_TABLE = b"\nCREATE TABLE "
_SERVER = re.compile(rb"^-- Server version\s+(\S+)", re.MULTILINE)
_INSERT = re.compile(rb"INSERT INTO `(\w+)`")
_COPY = re.compile(rb'COPY (?:"?[^". ]+"?\.)?"?(\w+)"? ')
#: quoted texts of a dump of MariaDB or MySQL, which escape quotes and line ends
_QUOTED = re.compile(rb"'(?:[^'\\]|\\.|'')*'", re.DOTALL)


def make_copy(url: URL, tables: list[str], namespace: str, target: Path, *, is_mysql: bool) -> dict[str, int]:
    """Write a copy of the tables to a new file; return table -> number of rows in it.

    ``is_mysql``: the server is MySQL, not MariaDB.
    """
    file = sqlite_file(url)
    if file is not None:
        copy_file(file, target)
        return check_file(target)
    command = programs.dump_command(url, tables, namespace, target.parent, is_mysql=is_mysql)
    programs.run(command, target=target)
    allow_older_servers(target)
    counts = count_dumped(target, for_psql=dialect_of_url(url).dumps_for_psql)
    return {name: counts[name] for name in tables}


def allow_older_servers(dump: Path) -> None:
    """Make a comment of a setting that only PostgreSQL 17 and later know, in its place: dumps are large."""
    with dump.open("r+b") as stream:
        head = stream.read(HEAD_BYTES).partition(_FIRST_TABLE)[0]
        if (at := head.find(_NEWER_SETTING)) >= 0:
            stream.seek(at + 1)
            stream.write(b"--")


def require_same_product(dump: Path, *, is_mysql: bool) -> None:
    """Raise NotConfigured if a dump is of MariaDB and the server is MySQL, or the reverse."""
    with dump.open("rb") as stream:
        version = _SERVER.search(stream.read(HEAD_BYTES))
    if version is not None and is_mysql == (b"MariaDB" in version[1]):
        products = ("MariaDB", "MySQL")
        raise NotConfigured(
            f"the backup is of {products[not is_mysql]}, the database is on {products[is_mysql]}, and neither"
            f" loads all that the other writes; restore it on {products[not is_mysql]}"
        )


def copy_file(database: Path, target: Path) -> None:
    """Copy a SQLite database in one step: writers are not blocked, and none makes it begin again."""
    target.touch(mode=0o600)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE")  # so that the copy is one file


def check_file(database: Path, also: Collection[str] = ()) -> dict[str, int]:
    """Check a SQLite file that has no other user; return table -> number of rows. Raises NotConfigured.

    ``also``: names of further tables to count.
    """
    try:
        with closing(sqlite3.connect(database)) as connection:
            verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as exc:
        raise NotConfigured(f"the copy of the database cannot be read: {exc}") from exc
    if verdict != "ok":
        raise NotConfigured(f"the database is damaged: {str(verdict).splitlines()[0]}")
    return count_rows(URL.create("sqlite", database=str(database)), also)


def count_rows(url: URL, also: Collection[str] = ()) -> dict[str, int]:
    """Return table -> number of rows of a database that is not in use."""
    engine = plain_engine(url)
    with engine.connect() as connection:
        return whole_tables.count_rows(connection, whole_tables.own_tables(connection, also))


def count_dumped(dump: Path, *, for_psql: bool) -> Counter[str]:
    """Return table -> number of rows in a dump."""
    rows: Counter[str] = Counter()
    current = ""
    with dump.open("rb") as stream:
        for line in stream:
            if for_psql:
                match = _COPY.match(line) if not current else None
                if match:
                    current = match[1].decode()
                elif line == b"\\.\n":
                    current = ""
                elif current:
                    rows[current] += 1
                continue
            match = _INSERT.match(line) if not current else None
            current = match[1].decode() if match else current
            if current:
                values = _QUOTED.sub(b"", line)
                rows[current] += len(re.findall(rb"(?:^|VALUES\s*|,)\(", values))
                current = "" if values.rstrip().endswith(b";") else current
    return rows


def prepare_dump(dump: Path, *, for_psql: bool) -> None:
    """Prepare a dump for loading; raises NotConfigured if it has commands that the client could run."""
    if for_psql:
        allow_older_servers(dump)  # Backups of earlier versions have the setting.
        client_commands.comment_out_restrictions(dump)
    client_commands.require_no_commands(dump, for_psql=for_psql)


def load_copy(url: URL, namespace: str, copy: Path, before: Sequence[str] = ()) -> None:
    """Execute a prepared dump on a database of a server without its tables; raises NotConfigured.

    ``before``: statements of PostgreSQL, executed in the same transaction.
    """
    if namespace:
        engine = plain_engine(url)
        with engine.begin() as connection:
            whole_tables.create_namespace(connection, namespace)
    programs.run(programs.load_command(url, copy.parent, before), source=copy)


def verify_copy(url: URL, namespace: str, copy: Path, rows: dict[str, int]) -> str:
    """Load a dump into a scratch database and count; return why that was not possible, else nothing.

    Raises NotConfigured if the dump cannot be loaded or has other rows than counted. A SQLite copy has been
    opened, checked and counted when it was made.
    """
    if sqlite_file(url) is not None:
        return ""
    prepare_dump(copy, for_psql=dialect_of_url(url).dumps_for_psql)
    engine = plain_engine(url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        try:
            scratch = whole_tables.create_scratch(connection)
        except DBAPIError as exc:
            return f"the user may not create a scratch database ({reason_of(exc)}); {_grant(url)}"
    try:
        load_copy(scratch, namespace, copy)
        require_same(rows, count_rows(scratch))
    finally:
        with engine.connect() as connection:
            whole_tables.drop_scratch(connection, scratch)
    return ""


def require_same(rows: dict[str, int], counts: dict[str, int]) -> None:
    """Raise NotConfigured, with the first table, unless a restored copy has the rows of the original."""
    for name in sorted(rows.keys() | counts.keys()):
        if rows.get(name) != counts.get(name):
            raise NotConfigured(
                f"the copy is not complete: table {name} has {counts.get(name)} of {rows.get(name)} rows"
            )


def _grant(url: URL) -> str:
    prefix = (url.database or "")[: whole_tables.NAME_MAX] + whole_tables.SCRATCH
    return f"to allow it: {dialect_of_url(url).scratch_grant(url, prefix)}"
