"""Interval of a fixed rate or delay, in the largest unit that divides it."""

from typing import Final, Literal

Unit = Literal["second", "minute", "hour", "day"]

_UNITS: Final[tuple[tuple[Unit, int], ...]] = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def interval_of(seconds: int) -> tuple[int, Unit]:
    """Return the number and the unit: 900 seconds are 15 minutes, 90 remain 90 seconds."""
    for unit, length in _UNITS:
        if seconds > 0 and seconds % length == 0:
            return seconds // length, unit
    return seconds, "second"
