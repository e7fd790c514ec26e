"""Regular backups: files of a folder named by their time, of which the newest are kept."""

import re
from datetime import UTC, datetime
from pathlib import Path

from app.clock import Millis
from app.services.backups.backup import Backup, back_up
from app.settings.config import Config

#: names of the files, in UTC: their order is that of their times
_NAME = "xxl-job-%Y%m%dT%H%M%SZ.backup"
_OWN = re.compile(r"xxl-job-\d{8}T\d{6}Z\.backup")


def back_up_to(config: Config, folder: Path, *, keep: int, now_ms: Millis) -> tuple[Backup, list[Path]]:
    """Write a backup to a folder and keep its newest ``keep``; return it and the removed ones.

    Files of other names stay. Raises NotConfigured before any is removed.
    """
    name = datetime.fromtimestamp(now_ms / 1000, UTC).strftime(_NAME)
    backup = back_up(config, folder / name, now_ms=now_ms)
    old_files = sorted(path for path in folder.iterdir() if _OWN.fullmatch(path.name))[:-keep]
    for path in old_files:
        path.unlink()
    return backup, old_files
