"""Helpers of the tests of migrated databases, for all that need them."""

import shutil
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, MetaData, Table, create_engine, text

from tests.support.databases import STARTERS, Server, migrate, temporary_directory

#: unlikely to be the machine's zone, so that a missing conversion shows
TIME_ZONE = "Asia/Shanghai"


#: a transaction left open by a test must not block the next one for long
LOCK_WAIT = {
    "mysql": "SET SESSION innodb_lock_wait_timeout = 5, lock_wait_timeout = 5",
    "postgresql": "SET lock_timeout = '5s'",
}


class Databases:
    """Databases of one test process; servers and migrated databases are created on first use."""

    def __init__(self, worker: str, servers: dict[str, Server]) -> None:
        self._open = ExitStack()
        self._directory = self._open.enter_context(temporary_directory(in_memory=True))
        self._worker = worker
        self._servers = servers
        self._migrated: dict[str, str] = {}
        self._cleaners: dict[str, Cleaner] = {}
        self._count = 0

    def server(self, kind: str) -> Server:
        if kind not in self._servers:
            self._servers[kind] = self._open.enter_context(
                STARTERS[kind](self._directory / kind, durable=False)
            )
        return self._servers[kind]

    def empty(self, kind: str) -> str:
        """Return the URL of a new database without a table."""
        self._count += 1
        name = f"test_{self._worker}_{self._count}"
        if kind == "sqlite":
            return f"sqlite:///{self._directory / name}.db"
        return self.server(kind).create_database(name)

    def migrated(self, kind: str) -> str:
        """Return the URL of a migrated database without further rows."""
        if kind not in self._migrated:
            self._migrated[kind] = self.empty(kind)
            migrate(self._migrated[kind])
            if kind != "sqlite":
                self._cleaners[kind] = Cleaner(self._migrated[kind])
        if kind == "sqlite":
            for old in self._directory.glob("xxl_job.db*"):
                old.unlink()
            file = shutil.copyfile(
                self._migrated[kind].removeprefix("sqlite:///"), self._directory / "xxl_job.db"
            )
            return f"sqlite:///{file}"
        self._cleaners[kind].clean()
        return self._migrated[kind]

    def close(self) -> None:
        for cleaner in self._cleaners.values():
            cleaner.close()
        self._open.close()


class Cleaner:
    """Resets the tables of a database to their rows at its creation, and their ids to the first."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url, isolation_level="READ COMMITTED")
        self._connection: Connection = self._engine.connect()
        self._connection.execute(text(LOCK_WAIT[self._engine.dialect.name]))
        metadata = MetaData()
        metadata.reflect(self._connection)
        self._tables = [
            table for table in reversed(metadata.sorted_tables) if table.name != "alembic_version"
        ]
        rows = {table: self._connection.execute(table.select()).mappings().all() for table in self._tables}
        self._revision = self._connection.scalar(text("SELECT version_num FROM alembic_version"))
        self._seeds = [
            (table.insert(), [dict(row) for row in seeded]) for table, seeded in rows.items() if seeded
        ]
        self._connection.commit()

    def clean(self) -> None:
        emptied = [table for table in self._tables if self._connection.execute(table.delete()).rowcount]
        for table in emptied:
            self._restart_ids(table)
        for insert, rows in self._seeds:
            self._connection.execute(insert, rows)
        self._connection.execute(
            text("UPDATE alembic_version SET version_num = :one"), {"one": self._revision}
        )
        self._connection.commit()

    def _restart_ids(self, table: Table) -> None:
        for column in table.primary_key:
            if column.autoincrement is not True:
                continue
            if self._engine.dialect.name == "mysql":
                self._connection.execute(text(f"ALTER TABLE {table.name} AUTO_INCREMENT = 1"))
            else:
                self._connection.execute(
                    text(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'), 1, false)")
                )

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()


kinds_key = pytest.StashKey[list[str]]()


databases_key = pytest.StashKey[Databases]()


_engines: dict[str, Engine] = {}
#: all that the tests of a process execute; SQLAlchemy keeps 500
STATEMENTS_KEPT = 10_000


def kept_engine(**options: Any) -> Engine:
    """Return one engine per set of options; every new engine would compile all statements again."""
    key = repr(options)
    if key not in _engines:
        _engines[key] = create_engine(**options, query_cache_size=STATEMENTS_KEPT)
    return _engines[key]
