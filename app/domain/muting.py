"""Muted alarms: how long a job, or a whole executor group, is muted, and which of several mutes an alarm belongs to.

While muted an alarm is not told but held; when the mute ends, what is still failing then is told in one message.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

from app.clock import DAY_MS, LATEST_MS, MINUTE_MS, Millis

#: the end of a mute that lasts until somebody undoes it
UNTIL_UNDONE_MS: Millis = LATEST_MS
#: the hour of the next day that "until tomorrow" means, in the zone of whoever mutes
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
    """What of a mute decides whom it mutes, and when."""

    @property
    def until_ms(self) -> Millis:
        """When it ends."""
        ...


M = TypeVar("M", bound=Muting)


def end_of(span: MuteSpan, *, now_ms: Millis, zone: str) -> Millis:
    """Return when a mute that begins now ends; ``zone`` is that of whoever mutes, by its IANA name."""
    if span is MuteSpan.UNTIL_UNDONE:
        return UNTIL_UNDONE_MS
    if span is MuteSpan.TOMORROW:
        local = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        morning = (local + timedelta(days=1)).replace(hour=MORNING_HOUR, minute=0, second=0, microsecond=0)
        return int(morning.replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000
    return now_ms + _LENGTHS[span]


def is_muted(until_ms: Millis, now_ms: Millis) -> bool:
    """Whether a mute with this end still holds."""
    return now_ms < until_ms


def longest(mutes: Iterable[M], *, now_ms: Millis) -> M | None:
    """Return the mute that ends last of those that hold now, None where none does: an alarm is summed up once, at the very end."""
    holding = [mute for mute in mutes if is_muted(mute.until_ms, now_ms)]
    return max(holding, key=lambda mute: mute.until_ms, default=None)
