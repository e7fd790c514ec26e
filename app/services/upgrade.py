"""Upgrade of a database to the newest schema."""

from alembic.command import upgrade as run_migrations
from alembic.config import Config as AlembicConfig
from alembic.util import CommandError

from app.errors import NotConfigured
from app.services.schema import MIGRATIONS
from app.store.upgrade_lock import WAIT_S


def upgrade(url: str, *, wait_s: float = WAIT_S) -> None:
    """Upgrade a database to the newest schema, one process at a time; raises NotConfigured."""
    config = AlembicConfig(MIGRATIONS / "alembic.ini")
    config.attributes |= {"url": url, "wait_s": wait_s}
    try:
        run_migrations(config, "head")
    except CommandError as exc:
        raise NotConfigured(f"the schema cannot be upgraded: {exc}") from exc
