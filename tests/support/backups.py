"""Helpers of the tests of backups, for all that need them."""

from pathlib import Path

from sqlalchemy import NullPool, create_engine, text

from app.clock import Millis
from app.database.engine import bind_engine, unbind_engine
from app.services.backups.backup import Backup, back_up
from app.services.backups.restore import restore as restore_backup
from app.services.backups.restore_options import Options, RestoreResult
from app.settings.config import Config

#: time of the backup, and of the restore
MADE: Millis = 1_780_000_000_000


LATER: Millis = MADE + 3_600_000


REPLACE = Options(replace_all=True)


def make_backup(config: Config, path: Path) -> Backup:
    return back_up(config, path, now_ms=MADE)


def restore(
    config: Config, path: Path, options: Options = REPLACE, *, at_ms: Millis = LATER
) -> RestoreResult:
    """Restore, by default an hour after the backup, and leave the engine bound to the result."""
    unbind_engine()
    try:
        return restore_backup(config, path, options, clock=lambda: at_ms)
    finally:
        bind_engine(config)


def execute(config: Config, *statements: str) -> None:
    engine = create_engine(config.database_url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
