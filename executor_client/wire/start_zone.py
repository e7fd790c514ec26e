"""Start zone: time zone of the process at its start, which frameworks such as Django may change later."""

import os
import struct
from datetime import timezone, tzinfo
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

_HOST_ZONE = Path("/etc/localtime")
#: the environment at the start of the process; later changes do not reach it
_ENVIRONMENT = Path("/proc/self/environ")
#: TZif file of version 2 without transitions, up to its footer (RFC 8536)
_UP_TO_FOOTER = (b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, 0, 1, 1) + bytes(7)) * 2


@lru_cache(maxsize=1)
def start_zone() -> tzinfo:
    """Return the zone of ``TZ`` at the start of the process, else that of the host."""
    name = start_tz()
    return _host_zone() if name is None else zone_of(name)


@lru_cache(maxsize=1)
def start_tz() -> str | None:
    """Return ``TZ`` as it was at the start of the process; None: it was not set.

    Where that cannot be read, as on macOS, it is the value at the first call: an executor makes it when it
    starts.
    """
    try:
        entries = _ENVIRONMENT.read_bytes().split(b"\0")
    except OSError:
        entries = []
    variables = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    # A program that sets its name in ps, as setproctitle does, may overwrite them.
    if b"PATH" not in variables:
        return os.environ.get("TZ")
    name = variables.get(b"TZ")
    return None if name is None else os.fsdecode(name)


def zone_of(name: str) -> tzinfo:
    """Return the zone of a value of ``TZ``, as the C library: ``Asia/Tokyo``, a file or a rule as ``CST-8``.

    Anything else is UTC.
    """
    name = name.removeprefix(":")
    try:
        if name.startswith("/"):
            return _zone_in(Path(name))
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    try:
        return ZoneInfo.from_file(BytesIO(_UP_TO_FOOTER + f"\n{name}\n".encode()))
    except ValueError:
        return timezone.utc


def _host_zone() -> tzinfo:
    try:
        return _zone_in(_HOST_ZONE)
    except (ValueError, OSError):
        return timezone.utc


def _zone_in(path: Path) -> tzinfo:
    with path.open("rb") as stream:
        return ZoneInfo.from_file(stream)
