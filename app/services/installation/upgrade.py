"""Upgrade of a database to the newest schema."""

from alembic.command import upgrade as run_migrations
from alembic.config import Config as AlembicConfig
from alembic.util import CommandError

from app.clock import DAY_MS, Millis
from app.database.dialects.choice import plain_engine
from app.errors import NotConfigured
from app.models.base import use_zone
from app.services.installation.schema import MIGRATIONS
from app.settings.config import Config
from app.store.copies.schema import adopts_runs
from app.store.copies.upgrade_lock import WAIT_S

RETENTION = "XXL_JOB_LOG_RETENTION_DAYS"


def upgrade(url: str, *, wait_s: float = WAIT_S) -> None:
    """Upgrade a database to the newest schema, one process at a time; raises NotConfigured."""
    config = AlembicConfig(MIGRATIONS / "alembic.ini")
    config.attributes |= {"url": url, "wait_s": wait_s}
    try:
        run_migrations(config, "head")
    except CommandError as exc:
        raise NotConfigured(f"the schema cannot be upgraded: {exc}") from exc


def retention_notice(config: Config, *, now_ms: Millis) -> str | None:
    """Return a line for the upgrade of an adopted database with runs that the workers will delete.

    None: there are none, or how long to keep them was decided.
    """
    days = config.log_retention_days
    if RETENTION in config.sources:
        return None
    use_zone(config.time_zone)
    with plain_engine(config.database_url).connect() as connection:
        if not adopts_runs(connection, before_ms=now_ms - days * DAY_MS):
            return None
    return (
        f"the workers will delete runs older than {days} days; set {RETENTION} before they start to keep more"
    )
