"""Clock: the only reader of the wall clock; durations use ``monotonic_s``, which never jumps."""

import re
import time
from datetime import date, datetime

monotonic_s = time.monotonic

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def now_ms() -> int:
    """Return the wall clock as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000  # noqa: TID251 - the one reader


def local_day(epoch_ms: int) -> str:
    """Return the local date of an instant as ``2024-05-01``; raise ``ValueError`` outside years 1 to 9999."""
    try:
        return datetime.fromtimestamp(epoch_ms // 1000).strftime("%Y-%m-%d").zfill(10)
    except (OverflowError, OSError) as exc:
        raise ValueError(f"{epoch_ms} ms is out of range") from exc


def local_stamp(epoch_ms: int) -> str:
    """Return the local time of an instant as ``2024-05-01 03:04:05``."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch_ms // 1000))


def parse_day(text: str) -> date | None:
    """Parse ``2024-05-01``; None for anything else, trailing text included."""
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
