"""Local times that exist twice or not at all, in whole seconds since 1970."""

from bisect import bisect_left
from datetime import datetime, timedelta, tzinfo
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1)
_SECOND: Final = timedelta(seconds=1)


def find_second(wall: datetime, tz: tzinfo, *, fold: int) -> int | None:
    """Return the instant of a naive local time; None if it does not exist.

    ``fold`` chooses between two (0, 1).
    """
    early, late = _seconds(wall, tz, 0), _seconds(wall, tz, 1)
    if early > late:
        return None
    return late if fold else early


def first_second_after_gap(wall: datetime, tz: tzinfo) -> int:
    """Return the first instant after the gap that contains this naive local time."""
    # With the offset after the gap the instant lies before the gap, with the one before the gap after it.
    before, after = _seconds(wall, tz, 1), _seconds(wall, tz, 0)
    local_second = (wall - _EPOCH) // _SECOND
    return before + bisect_left(
        range(before, after), True, key=lambda second: second + _offset(second, tz) > local_second
    )


def _seconds(wall: datetime, tz: tzinfo, fold: int) -> int:
    offset = tz.utcoffset(wall.replace(fold=1) if fold else wall)
    assert offset is not None, "a tzinfo without offsets"
    return (wall - _EPOCH - offset) // _SECOND


def _offset(second: int, tz: tzinfo) -> int:
    offset = datetime.fromtimestamp(second, tz).utcoffset()
    assert offset is not None, "a tzinfo without offsets"
    return offset // _SECOND
