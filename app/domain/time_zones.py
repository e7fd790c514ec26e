"""Time zones: whether two names mean the same one."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.clock import Millis

#: zones are compared at the present and each of so many months after it
_MONTHS = 24
_MONTH = timedelta(days=30)


def differ(first: str, second: str, *, now_ms: Millis) -> bool:
    """Whether two zones have different times now or soon; not for two names of one, such as UTC and Etc/UTC.

    Nothing is known of a name that this host does not have.
    """
    try:
        zones = [ZoneInfo(name) for name in {first, second}]
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    moments = [now + _MONTH * number for number in range(_MONTHS + 1)]
    return any(len({moment.astimezone(zone).utcoffset() for zone in zones}) > 1 for moment in moments)
