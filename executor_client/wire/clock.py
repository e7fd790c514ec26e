"""Clock: the only reader of the wall clock; durations use ``monotonic_s``, which never jumps."""

import re
import time
from datetime import date, datetime
from functools import lru_cache

from executor_client.wire.start_zone import start_zone

monotonic_s = time.monotonic

#: local days begin and end at a quarter of an hour in UTC, in every time zone of today
_QUARTER_MS = 900_000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def now_ms() -> int:
    """Return the wall clock as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000  # noqa: TID251 - the one reader


def local_day(epoch_ms: int) -> str:
    """Return the date of an instant in the start zone as ``2024-05-01``.

    Raises ``ValueError`` outside years 1 to 9999.
    """
    return _day_of(epoch_ms // _QUARTER_MS)


@lru_cache(maxsize=64)
def _day_of(quarter: int) -> str:
    try:
        day = datetime.fromtimestamp(quarter * _QUARTER_MS // 1000, start_zone())
    except (OverflowError, OSError) as exc:
        raise ValueError(f"{quarter * _QUARTER_MS} ms is out of range") from exc
    return day.strftime("%Y-%m-%d").zfill(10)


def local_stamp(epoch_ms: int) -> str:
    """Return the time of an instant in the start zone as ``2024-05-01 03:04:05``."""
    return _stamp_of(epoch_ms // 1000)


@lru_cache(maxsize=16)
def _stamp_of(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, start_zone()).strftime("%Y-%m-%d %H:%M:%S")


def parse_day(text: str) -> date | None:
    """Parse ``2024-05-01``; None for anything else, trailing text included."""
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
