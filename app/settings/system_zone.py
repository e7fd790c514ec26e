"""Time zone of the system, for schedules if no other is configured."""

import os
from pathlib import Path

from app.settings.parsers import is_zone


def system_zone(localtime: Path = Path("/etc/localtime"), timezone: Path = Path("/etc/timezone")) -> str:
    """Return the IANA name of the system time zone, ``UTC`` if it is unknown."""
    candidates = [os.environ.get("TZ", "").lstrip(":")]
    if localtime.is_symlink():
        candidates.append(str(localtime.resolve()))
    if timezone.is_file():
        candidates.append(timezone.read_text(encoding="utf-8").strip())
    for candidate in candidates:
        name = candidate.rpartition("zoneinfo/")[2].removeprefix("posix/")
        if name and is_zone(name):
            return name
    return "UTC"
