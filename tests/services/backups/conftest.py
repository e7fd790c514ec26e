"""An installation to back up, and restores of it, for tests of backups."""

import pytest

from app.settings.config import Config
from app.settings.home import access_tokens, secret_key
from app.store.copies import whole_tables


@pytest.fixture
def installation(database: str, config: Config) -> Config:
    """An installation with its secrets in the home folder."""
    secret_key(config)
    access_tokens(config)
    return config


@pytest.fixture(autouse=True)
def without_the_connection_that_empties_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = whole_tables.other_sessions
    monkeypatch.setattr(whole_tables, "other_sessions", lambda connection: counted(connection) - 1)
