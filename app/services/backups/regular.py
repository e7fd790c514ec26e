"""Regular backups: files of a folder named by their time, of which the newest are kept."""

import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from app.clock import DAY_MS, Millis
from app.services.backups.archive import PART
from app.services.backups.backup import Backup, back_up
from app.settings.config import Config

#: names of the files, in UTC: their order is that of their times
_NAME = "xxl-job-%Y%m%dT%H%M%SZ.backup"
_OWN = re.compile(r"xxl-job-[0-9]{8}T[0-9]{6}Z\.backup")
#: age from which an unfinished file is one of a command that was killed
UNFINISHED_MS = DAY_MS


def back_up_to(config: Config, folder: Path, *, keep: int, now_ms: Millis) -> tuple[Backup, list[Path]]:
    """Write a backup to a folder and keep it with the newest others, ``keep`` in all.

    Return it and the removed ones. Files of other names stay. Raises NotConfigured before any is removed.
    """
    _remove_unfinished(folder, now_ms)
    name = datetime.fromtimestamp(now_ms / 1000, UTC).strftime(_NAME)
    backup = back_up(config, folder / name, now_ms=now_ms)
    # Not by its name: a clock that was ahead may have left newer ones.
    others = [path for path in folder.iterdir() if _OWN.fullmatch(path.name) and path.name != name]
    files = sorted(path for path in others if path.is_symlink() or not path.is_dir())
    old_files = files[: max(len(files) - keep + 1, 0)]
    for path in old_files:
        path.unlink()
    return backup, old_files


def _remove_unfinished(folder: Path, now_ms: Millis) -> None:
    """Remove what killed commands have left; ignore what cannot be removed."""
    for path in folder.glob(f".xxl-job-*.backup.*{PART}"):
        with suppress(OSError):  # Another command may be removing it.
            if path.lstat().st_mtime * 1000 < now_ms - UNFINISHED_MS:
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)
