"""A used SQLite installation, and an empty database of a server, for tests of promotions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from app.settings.config import Config
from tests.support.migrated_databases import TIME_ZONE, databases_key

KEY = "promotion-key-0123456789-0123456789"


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    """Settings of an installation on an empty, migrated SQLite file."""
    url = request.config.stash[databases_key].migrated("sqlite")
    home = tmp_path / "instance"
    home.mkdir()
    return Config(home=home, database_url=url, time_zone=TIME_ZONE, secret_key=KEY)


@pytest.fixture
def old_engine(old: Config) -> Iterator[Engine]:
    """A plain engine of the SQLite file."""
    engine = create_engine(old.database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def new_engine(empty_database: str) -> Iterator[Engine]:
    """A plain engine of the server's empty database."""
    engine = create_engine(empty_database, isolation_level="READ COMMITTED")
    yield engine
    engine.dispose()
