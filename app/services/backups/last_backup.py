"""Last backup that was made on this host: a line in the home folder, for metrics and the doctor."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.clock import Millis
from app.errors import NotConfigured
from app.settings.config import Config
from app.settings.home import LAST_BACKUP_FILE, replace_file


@dataclass(frozen=True, slots=True)
class LastBackup:
    """When and where a backup was made."""

    made_ms: Millis
    path: Path


def note_last(config: Config, last: LastBackup) -> None:
    """Record a backup, if the home folder is writable."""
    with suppress(NotConfigured):
        replace_file(config.home / LAST_BACKUP_FILE, f"{last.made_ms} {last.path}")


def find_last(config: Config) -> LastBackup | None:
    """Return the last backup that was recorded; None if there is none."""
    try:
        made_ms, _, path = (config.home / LAST_BACKUP_FILE).read_text(encoding="utf-8").strip().partition(" ")
        return LastBackup(int(made_ms), Path(path))
    except (OSError, ValueError):
        return None
