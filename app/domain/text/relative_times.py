"""Relative times: how a reader names an instant that is near."""

from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Final

from app.clock import DAY_MS, LATEST_MS, SECOND_MS, Millis

#: an instant nearer than this is "now"
NOW_MS: Final[Millis] = 2 * SECOND_MS
#: from here on the day and the time of day are more natural than a number of hours
DISTANCE_MS: Final[Millis] = 12 * 3_600 * SECOND_MS
#: beyond this an instant is a date
NEAR_MS: Final[Millis] = 30 * DAY_MS


class Nearness(StrEnum):
    """Way to name an instant."""

    JUST_NOW = "just now"
    NOW = "now"
    #: number of seconds: "in 12 minutes"
    SECONDS = "seconds"
    #: with the time of day: "tomorrow 06:00"
    YESTERDAY = "yesterday"
    TODAY = "today"
    TOMORROW = "tomorrow"
    #: number of days: "in 3 days"
    DAYS = "days"
    DATE = "date"


_NAMED_DAYS: Final = {-1: Nearness.YESTERDAY, 0: Nearness.TODAY, 1: Nearness.TOMORROW}


def nearness(ms: Millis, zone: tzinfo, *, now_ms: Millis) -> tuple[Nearness, int]:
    """Return how to name an instant, and its number of seconds or days, negative in the past.

    Days are those of the calendar in the reader's zone.
    """
    distance_ms = ms - now_ms
    if abs(distance_ms) < NOW_MS:
        return (Nearness.JUST_NOW if distance_ms <= 0 else Nearness.NOW), 0
    if abs(distance_ms) < DISTANCE_MS:
        return Nearness.SECONDS, distance_ms // SECOND_MS
    if abs(distance_ms) > NEAR_MS:
        return Nearness.DATE, 0
    day, today = (datetime.fromtimestamp(min(at, LATEST_MS) // SECOND_MS, zone).date() for at in (ms, now_ms))
    days = (day - today).days
    return _NAMED_DAYS.get(days, Nearness.DAYS), days
