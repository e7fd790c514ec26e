"""Tables that a restore replaces: only those of the program, and all of them or none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from app.config import Config
from app.models.job import Job
from app.services.backups import dumps
from app.store import whole_tables
from tests.factories import make_job, only_row
from tests.plan import every_database
from tests.services.backups.conftest import execute, make_backup, restore

pytestmark = every_database

#: a table of others with our prefix
FOREIGN = "xxl_job_costs"


@pytest.fixture
def foreign(installation: Config) -> Iterator[str]:
    """A table of others with one row."""
    execute(installation, f"CREATE TABLE {FOREIGN} (id INT)", f"INSERT INTO {FOREIGN} VALUES (7)")
    yield FOREIGN
    execute(installation, f"DROP TABLE {FOREIGN}")


@pytest.fixture
def newer_pg_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pg_dump that writes what that of PostgreSQL 17 does."""
    program = tmp_path / "bin" / "pg_dump"
    program.parent.mkdir()
    added = r"s/^SET lock_timeout = 0;$/&\nSET transaction_timeout = 0;/"
    program.write_text(f"#!/bin/sh\n{shutil.which('pg_dump')} \"$@\" | sed '{added}'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def read(config: Config, statement: str) -> object:
    with create_engine(config.database_url, poolclass=NullPool).connect() as connection:
        return connection.scalar(text(statement))


def test_tables_of_others_stay(installation: Config, tmp_path: Path, foreign: str) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    assert foreign not in made.manifest.rows
    restored = restore(installation, made.path)
    assert read(installation, f"SELECT id FROM {foreign}") == 7
    assert restored.unknown == ([] if installation.is_sqlite else [foreign])


def test_a_backup_of_an_earlier_version_may_have_tables_of_others(
    installation: Config, tmp_path: Path, foreign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_job()
    with monkeypatch.context() as patched:
        patched.setattr(whole_tables, "OWN", whole_tables.OWN | {foreign})
        made = make_backup(installation, tmp_path / "one.backup")
    assert made.manifest.rows[foreign] == 1
    execute(installation, f"UPDATE {foreign} SET id = 8")
    restore(installation, made.path)
    assert read(installation, f"SELECT id FROM {foreign}") == 7
    assert only_row(Job).id


@pytest.mark.databases("postgresql")
@pytest.mark.usefixtures("newer_pg_dump")
def test_a_dump_of_a_newer_program_is_restored_on_an_older_server(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_job()
    made = make_backup(installation, tmp_path / "one.backup")
    assert made.manifest.verified
    with monkeypatch.context() as patched:  # as before the line was left out, without the right to verify
        patched.setattr(dumps, "allow_older_servers", lambda _dump: None)
        patched.setattr(dumps, "verify_copy", lambda *_arguments: "")
        earlier = make_backup(installation, tmp_path / "earlier.backup")
    for path in (made.path, earlier.path):
        restore(installation, path)
        assert only_row(Job).id
