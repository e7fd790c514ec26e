"""Dates of scripts, ``2024-05-01 00:00:00``, parsed leniently as by Java's SimpleDateFormat in the original.

Text after the seconds is ignored, such as a fraction; blanks before a number and missing leading zeros are
accepted.
"""

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from app.clock import LATEST_MS, Millis, storable_ms

_NUMBER: Final = r"[ \t]*(-?\d+)"
_DATE: Final = re.compile(f"{_NUMBER}-{_NUMBER}-{_NUMBER} {_NUMBER}:{_NUMBER}:{_NUMBER}")
_MONTHS_A_YEAR: Final = 12
#: longer numbers count as this one, beyond every instant that can be stored
_DIGITS_MAX: Final = 18
_HUGE: Final = 10**_DIGITS_MAX


def read_lenient(text: str, zone: str) -> Millis | None:
    """Return the instant of a local time.

    Fields carry over: ``24:00:00`` is midnight, February 30 is March 1 or 2.

    None if the text is not a date. An instant out of range becomes the nearest one in range.
    """
    fields = _fields(text)
    if fields is None:
        return None
    year, month, day, hour, minute, second = fields
    year, month_index = divmod(year * _MONTHS_A_YEAR + month - 1, _MONTHS_A_YEAR)
    passed_s = (((day - 1) * 24 + hour) * 60 + minute) * 60 + second
    try:
        return _instant(datetime(year, month_index + 1, 1) + timedelta(seconds=passed_s), zone)
    except (ValueError, OverflowError):  # the date is before the year 1 or after the year 9999
        return LATEST_MS if year > 0 and passed_s >= 0 else 0


def read_strict(text: str, zone: str) -> Millis | None:
    """Return the instant of a valid local time, or None."""
    fields = _fields(text)
    try:
        return None if fields is None else _instant(datetime(*fields), zone)
    except (ValueError, OverflowError):
        return None


def _fields(text: str) -> tuple[int, int, int, int, int, int] | None:
    """Return year, month, day, hour, minute and second as written."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(_number, match.groups())
    return year, month, day, hour, minute, second


def _number(text: str) -> int:
    if len(text) <= _DIGITS_MAX:
        return int(text)
    return -_HUGE if text.startswith("-") else _HUGE


def _instant(local: datetime, zone: str) -> Millis:
    return storable_ms(int(local.replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000)
