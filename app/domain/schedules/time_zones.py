"""Offsets of time zones: comparison of two, and clocks that go back."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.clock import SECOND_MS, Millis

#: zones are compared at the present and each of so many days after it: some differ for days of a year only
_DAYS = 731
_DAY = timedelta(days=1)
#: days in which clocks go back that do so each year
_YEAR_DAYS = 366


def differ(first: str, second: str, *, now_ms: Millis) -> bool:
    """Whether two zones have different times now or soon; not for two names of one, such as UTC and Etc/UTC.

    Nothing is known of a name that this host does not have.
    """
    if first == second:
        return False
    try:
        zones = [ZoneInfo(name) for name in (first, second)]
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    moments = [now + _DAY * number for number in range(_DAYS)]
    return any(len({moment.astimezone(zone).utcoffset() for zone in zones}) > 1 for moment in moments)


def goes_back(zone: ZoneInfo, *, now_ms: Millis) -> bool:
    """Whether the clocks of a zone go back within a year, as at the end of summer time."""
    now = datetime.fromtimestamp(now_ms // SECOND_MS, UTC)
    offsets = [(now + _DAY * number).astimezone(zone).utcoffset() for number in range(_YEAR_DAYS + 1)]
    return any(
        after is not None and before is not None and after < before for before, after in pairwise(offsets)
    )
