"""Tables that a restore replaces: only those of the program, and all of them or none."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from app.config import Config
from app.models.job import Job
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
