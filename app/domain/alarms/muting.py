"""Mutes of jobs and executor groups: their duration, and the choice between several mutes of an alarm.

Alarms of a muted job are held. When the mute ends, one summary reports the jobs that are still failing.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

from app.clock import DAY_MS, LATEST_MS, MINUTE_MS, Millis

#: the end of a mute without a time limit
UNTIL_UNDONE_MS: Millis = LATEST_MS
#: the hour of the next day meant by "until tomorrow", in the user's time zone
MORNING_HOUR = 8
#: characters of a reason
REASON_MAX = 200


class MuteSpan(StrEnum):
    """How long alarms can be muted."""

    HOUR = "1h"
    EIGHT_HOURS = "8h"
    DAY = "24h"
    TOMORROW = "tomorrow"
    WEEK = "7d"
    UNTIL_UNDONE = "undone"


_LENGTHS: dict[MuteSpan, Millis] = {
    MuteSpan.HOUR: 60 * MINUTE_MS,
    MuteSpan.EIGHT_HOURS: 8 * 60 * MINUTE_MS,
    MuteSpan.DAY: DAY_MS,
    MuteSpan.WEEK: 7 * DAY_MS,
}


class Muting(Protocol):
    """Anything with the end of a mute."""

    @property
    def until_ms(self) -> Millis:
        """When it ends."""
        ...


M = TypeVar("M", bound=Muting)


def end_of(span: MuteSpan, *, now_ms: Millis, zone: str) -> Millis:
    """Return the end of a mute that starts now; ``zone`` is the IANA name of the user's time zone."""
    if span is MuteSpan.UNTIL_UNDONE:
        return UNTIL_UNDONE_MS
    if span is MuteSpan.TOMORROW:
        local = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        morning = (local + timedelta(days=1)).replace(hour=MORNING_HOUR, minute=0, second=0, microsecond=0)
        return int(morning.replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000
    return now_ms + _LENGTHS[span]


def is_muted(until_ms: Millis, now_ms: Millis) -> bool:
    """Whether a mute with this end is in force."""
    return now_ms < until_ms


def longest(mutes: Iterable[M], *, now_ms: Millis) -> M | None:
    """Return the mute in force that ends last, so that an alarm is in one summary only.

    None if none is in force.
    """
    in_force = [mute for mute in mutes if is_muted(mute.until_ms, now_ms)]
    return max(in_force, key=lambda mute: mute.until_ms, default=None)
