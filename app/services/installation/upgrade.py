"""Upgrade of a database to the newest schema, and what to tell the operator about it."""

from collections.abc import Callable

from sqlalchemy import Connection

from app.clock import DAY_MS, Millis
from app.domain.text.texts import counted
from app.errors import NotConfigured
from app.models.base import use_zone
from app.services.installation.schema import MIGRATIONS, newest_revision
from app.settings.config import Config
from app.store.copies.schema import adopts_runs, find_former_tables, find_revision, has_facts, has_jobs
from app.store.copies.upgrade_lock import WAIT_S

RETENTION = "XXL_JOB_LOG_RETENTION_DAYS"

KEEPS_NONE = "log archive: off, as there are jobs; XXL_JOB_LOG_ARCHIVE=failed keeps the logs of failed runs"
KEEPS_FAILED = "log archive: the logs of failed runs are kept; XXL_JOB_LOG_ARCHIVE=off keeps none"

Look = Callable[[Connection], None]


def upgrade(url: str, *, wait_s: float = WAIT_S, look: Look | None = None) -> None:
    """Upgrade a database to the newest schema, one process at a time; raises NotConfigured.

    ``look`` is called under the upgrade lock before anything changes, not for a database that is up to date.
    """
    # Only here: Alembic takes 0.15 s of the start of each command that may upgrade.
    from alembic.command import upgrade as run_migrations
    from alembic.config import Config as AlembicConfig
    from alembic.util import CommandError

    config = AlembicConfig(MIGRATIONS / "alembic.ini")
    config.attributes |= {"url": url, "wait_s": wait_s, "look": look}
    try:
        run_migrations(config, "head")
    except CommandError as exc:
        raise NotConfigured(f"the schema cannot be upgraded: {exc}") from exc


class UpgradeReport:
    """Lines about an upgrade, from what the database has before it."""

    def __init__(self, config: Config, *, now_ms: Millis, warn: Callable[[str], None]) -> None:
        self._config = config
        self._now_ms = now_ms
        self._warn = warn
        self._change = "nothing to do"
        #: of the log archive, if this upgrade decides it
        self.notice = ""

    def look(self, connection: Connection) -> None:
        """Look at the tables before they are upgraded, and warn of runs that the workers will delete."""
        self._change = change_of(connection)
        if not self._config.archive.mode and not has_facts(connection):
            self.notice = KEEPS_NONE if has_jobs(connection) else KEEPS_FAILED
        if notice := retention_notice(connection, self._config, now_ms=self._now_ms):
            self._warn(notice)

    @property
    def summary(self) -> str:
        """What was done: ``adopted XXL-JOB 2.3 to 2.4: 20 jobs, 118 runs; schema 0014``."""
        return f"{self._change}; schema {_number(newest_revision())}"


def change_of(connection: Connection) -> str:
    """Return what an upgrade is about to do with the database."""
    revision = find_revision(connection)
    if revision == newest_revision():
        return "nothing to do"
    if revision is not None:
        return f"upgraded from schema {_number(revision)}"
    former = find_former_tables(connection)
    if former is None:
        return "created the tables"
    return f"adopted XXL-JOB {former.releases}: {counted(former.jobs, 'job')}, {counted(former.runs, 'run')}"


def _number(revision: str) -> str:
    return revision.partition("_")[0]


def retention_notice(connection: Connection, config: Config, *, now_ms: Millis) -> str | None:
    """Return a line for the upgrade of an adopted database with runs that the workers will delete.

    None: there are none, or how long to keep them was decided.
    """
    days = config.log_retention_days
    if RETENTION in config.sources:
        return None
    use_zone(config.time_zone)
    if not adopts_runs(connection, before_ms=now_ms - days * DAY_MS):
        return None
    return (
        f"the workers will delete runs older than {days} days; set {RETENTION} before they start to keep more"
    )
