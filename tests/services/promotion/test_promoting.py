"""Promotion of an installation at rest: everything arrives, and the old database is closed."""

from sqlalchemy import Engine

from app.config import Config
from app.services.promotion.promoting import promote
from tests.services.promotion.conftest import content, fill, on_servers

pytestmark = on_servers


def quiet(_table: str, _done: int, _total: int) -> None:
    """Show no progress."""


def test_every_table_arrives_as_it_was(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    fill(old_engine)
    before = content(old_engine)
    assert all(len(rows) == 3 for rows in before.values())
    promoted = promote(old, empty_database, quiet)
    assert content(new_engine) == before
    assert promoted.rows == 3 * len(before)
