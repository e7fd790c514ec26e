"""Copying of a live SQLite database to a server: all rows once, then those that change."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, IntegrityError

from app.domain.copied_values import CopiedColumn
from app.errors import Conflict
from app.store.copies import promotion_source as source
from app.store.copies import promotion_target as target
from app.store.copies import whole_tables
from app.store.copies.promotion_source import Key, Rows, SourceTable
from app.store.copies.promotion_target import NotCopied

#: table, rows copied so far, rows it had at the start
Progress = Callable[[str, int, int], None]

#: rows of one transaction of the server
CHUNK = 1_000
#: attempts at a chunk, each after the changes so far: a row may have taken over the unique value of another
ATTEMPTS = 3


class Copier:
    """Copies tables and follows their changes; the caller has started the record of changes before."""

    def __init__(self, database: sqlite3.Connection, server: Engine, tables: Sequence[SourceTable]) -> None:
        self._database = database
        self._server = server
        self._counts = {table.name: source.count_rows(database, table)[0] for table in tables}
        #: smallest tables first, because constraint errors usually show up there
        self.tables = sorted(tables, key=lambda table: self._counts[table.name])
        self._columns = self._find_columns()
        self._copied: dict[str, Key] = {}
        self._complete: set[str] = set()
        #: number of the last change that was copied
        self._last_change = 0

    def _find_columns(self) -> dict[str, list[CopiedColumn]]:
        """Return the server's columns in the order of the source; raises Conflict where they differ."""
        with self._server.connect() as connection:
            present = {
                name: {column.name: column for column in target.find_columns(connection, name)}
                for name in whole_tables.own_tables(connection)
                if name not in source.NOT_COPIED
            }
        own_columns = {table.name: set(table.columns) for table in self.tables}
        differing = {
            name
            for name in own_columns.keys() | present.keys()
            if own_columns.get(name) != present.get(name, {}).keys()
        }
        if differing:
            raise Conflict(f"these tables differ from those of this program: {', '.join(sorted(differing))}")
        return {table.name: [present[table.name][name] for name in table.columns] for table in self.tables}

    def copy_all(self, progress: Progress) -> int:
        """Copy all rows there are; return how many. Rows may change meanwhile. Raises NotCopied."""
        return sum(self._copy(table, progress) for table in self.tables)

    def _copy(self, table: SourceTable, progress: Progress) -> int:
        count, total = 0, self._counts[table.name]
        while rows := self._copy_chunk(table):
            count += len(rows)
            self._copied[table.name] = rows[-1][0]
            progress(table.name, count, max(total, count))
        self._complete.add(table.name)
        return count

    def _copy_chunk(self, table: SourceTable) -> Rows:
        """Copy the next rows of a table and return them."""
        after, rows = self._copied.get(table.name), Rows()
        for attempt in range(ATTEMPTS):
            rows = self._convert(table, source.read_chunk(self._database, table, after, CHUNK))
            try:
                with self._server.begin() as connection:
                    if attempt:
                        target.delete_rows(connection, table, [row[0] for row in rows])
                    target.insert_rows(connection, table, rows)
                return rows
            except (IntegrityError, DataError):
                self.follow()
        raise NotCopied(self._find_refused(table, rows))

    def follow(self) -> int:
        """Copy what has changed since the last call; return the number of changed rows. Raises NotCopied.

        As part of an open writing transaction of the source these are the last changes.
        """
        with source.snapshot(self._database):
            last, changes = source.find_changes(self._database, self._last_change)
            for table in self.tables:
                keys = [key for key in changes.get(table.name, ()) if self._is_copied(table, key)]
                if keys:
                    self._replace(table, keys)
        self._last_change = last
        return sum(map(len, changes.values()))

    def _is_copied(self, table: SourceTable, key: Key) -> bool:
        """Whether a row is in the part that has been copied; the rest is read later anyway."""
        last_key: Any = self._copied.get(table.name)
        return table.name in self._complete or (last_key is not None and key <= last_key)

    def _replace(self, table: SourceTable, keys: Sequence[Key]) -> None:
        rows = self._convert(table, source.read_rows(self._database, table, keys))
        try:
            with self._server.begin() as connection:
                target.delete_rows(connection, table, keys)
                for start in range(0, len(rows), CHUNK):
                    target.insert_rows(connection, table, rows[start : start + CHUNK])
        except (IntegrityError, DataError) as exc:
            raise NotCopied(self._find_refused(table, rows, keys)) from exc

    def _convert(self, table: SourceTable, rows: Rows) -> Rows:
        """Return the rows as the server takes them. Raises NotCopied naming the first that it cannot."""
        columns = self._columns[table.name]
        try:
            by_column = [
                list(map(column.convert, values))
                for column, values in zip(columns, zip(*rows, strict=True), strict=False)
            ]
        except ValueError:
            raise NotCopied(_find_unfit(table, columns, rows)) from None
        return list(zip(*by_column, strict=True))

    def _find_refused(self, table: SourceTable, rows: Rows, old_keys: Sequence[Key] = ()) -> str:
        """Return which row the server refuses, and why; changes nothing."""
        with self._server.connect() as connection:
            target.delete_rows(connection, table, [*old_keys, *(row[0] for row in rows)])
            return target.find_refused_row(connection, table, rows)

    def compare(self, connection: Connection) -> None:
        """Raise NotCopied if a table has not the same rows on both sides; within the last transaction."""
        for table in self.tables:
            old = source.count_rows(self._database, table)
            new = target.count_rows(connection, table)
            if old != new:
                raise NotCopied(f"{table.name}: {old[0]} rows here, {new[0]} there, or other ids")

    def continue_ids(self, connection: Connection) -> None:
        """Set the server's next ids of all tables to follow those of the source."""
        ids_before: Mapping[str, int] = source.find_last_ids(self._database)
        id_tables = [table for table in self.tables if table.key == "id"]
        last_ids = {
            table: max(ids_before.get(table.name, 0), source.find_highest_id(self._database, table))
            for table in id_tables
        }
        target.continue_ids(connection, last_ids)


def _find_unfit(table: SourceTable, columns: Sequence[CopiedColumn], rows: Rows) -> str:
    """Return the row and column whose value the server cannot hold, and why."""
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            try:
                column.convert(value)
            except ValueError as exc:
                return f"{table.name}, {table.key} {row[0]}: {column.name} {exc}"
    raise AssertionError("not reached")
