"""Tables that a restore replaces: only those of the program, and all of them or none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from app.errors import NotConfigured
from app.models.job import Job
from app.services.backups import archive, dumps
from app.services.backups.manifest import Manifest
from app.services.installation import preconditions
from app.services.installation.schema import RESTORING
from app.settings.config import Config
from app.settings.home import TOKEN_FILE
from app.store.copies import whole_tables
from app.store.copies.schema import find_revision
from tests.support.backups import execute, make_backup, restore
from tests.support.factories import all_rows, make_job, only_row
from tests.support.plan import every_database

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


@pytest.fixture
def reader(installation: Config) -> Iterator[str]:
    """The database's URL for a user who may only read it."""
    url = make_url(installation.database_url)
    if url.get_backend_name() == "mysql":
        user = "observer@'127.0.0.1'"
        made = [f"CREATE USER {user}", f"GRANT SELECT ON {url.database}.* TO {user}"]
        removed = [f"DROP USER {user}"]
    else:
        made = ["CREATE ROLE observer LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO observer"]
        removed = ["DROP OWNED BY observer", "DROP ROLE observer"]
    execute(installation, *made)
    yield url.set(username="observer").render_as_string(hide_password=False)
    execute(installation, *removed)


def require_untouched(config: Config) -> None:
    """The earlier tables and secrets are there, and programs start."""
    preconditions.check_schema(create_engine(config.database_url, poolclass=NullPool))
    assert only_row(Job).job_desc == "earlier"
    assert (config.home / TOKEN_FILE).read_text() == "another token of 16"


def change(config: Config) -> None:
    """Change the installation after its backup."""
    make_job(job_desc="earlier")
    (config.home / TOKEN_FILE).write_text("another token of 16")


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


@pytest.mark.databases("mariadb", "postgresql")
def test_a_table_that_another_user_reads_is_not_waited_for_without_limit(
    installation: Config, tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.copies.upgrade_lock.TABLE_WAIT_S", 1)
    made = make_backup(installation, tmp_path / "one.backup")
    change(installation)
    with create_engine(reader, poolclass=NullPool).connect() as connection:
        connection.execute(text("SELECT COUNT(*) FROM xxl_job_user"))
        with pytest.raises(NotConfigured, match=r"not replaced: .*(lock timeout|1205).*; the database is"):
            restore(installation, made.path)
    require_untouched(installation)
    restore(installation, made.path)
    assert all_rows(Job) == []


@pytest.mark.databases("mariadb", "postgresql")
def test_an_absent_client_program_is_noticed_before_anything_is_removed(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    change(installation)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotConfigured, match=r"is not installed \(Debian: apt install \w+-client\)"):
        restore(installation, made.path)
    require_untouched(installation)


@pytest.mark.databases("postgresql")
def test_views_that_depend_on_the_tables_are_named(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    change(installation)
    execute(installation, "CREATE VIEW costs AS SELECT id FROM xxl_job_log")
    try:
        with pytest.raises(NotConfigured, match="view costs depends on table xxl_job_log; the database is"):
            restore(installation, made.path)
    finally:
        execute(installation, "DROP VIEW costs")
    require_untouched(installation)


@pytest.mark.databases("postgresql")
def test_a_load_that_fails_keeps_the_earlier_tables(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    change(installation)
    extract = archive.extract

    def extract_wrong(path: Path, manifest: Manifest, name: str, target: Path) -> None:
        extract(path, manifest, name, target)
        with target.open("a") as stream:
            stream.write("COMMENT ON TABLE nowhere IS 'x';\n")

    monkeypatch.setattr(archive, "extract", extract_wrong)
    with pytest.raises(NotConfigured, match='"nowhere" does not exist.*; the database is as before'):
        restore(installation, made.path)
    require_untouched(installation)


@pytest.mark.databases("postgresql")
def test_no_program_starts_while_the_tables_are_replaced(database: str) -> None:
    engine = create_engine(database, poolclass=NullPool)
    with engine.connect() as loading, engine.connect() as starting:
        for statement in whole_tables.replacing(loading, whole_tables.own_tables(loading), RESTORING):
            loading.exec_driver_sql(statement)
        starting.exec_driver_sql("SET lock_timeout = '1ms'")
        with pytest.raises(OperationalError, match="lock timeout"):
            find_revision(starting)
