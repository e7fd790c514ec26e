"""Comparison of time zones by their offsets."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.clock import Millis

#: zones are compared at the present and each of so many days after it: some differ for days of a year only
_DAYS = 731
_DAY = timedelta(days=1)


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
