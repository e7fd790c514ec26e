"""What the fields of a cron expression allow, each by itself: the starts of the quarters of an hour, the hours, and the days.

Those of five fields are read from what ``cron.unix`` answers on days without a change of the clocks.
"""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.cron import unix
from app.domain.cron.days import days_in_month, mask_of
from app.domain.cron.expression import CronExpression
from app.domain.cron.fields import MINUTE, Field, parse_field

_QUARTERS: Final = range(4)
_HOUR_MS: Final[Millis] = 60 * MINUTE_MS
#: the minutes of the first quarter of an hour, as bits
_A_QUARTER: Final = (1 << 15) - 1
#: a day and an hour in which no clock changes, to read the fields of Unix crons from
_PLAIN_MS: Final[Millis] = DAY_MS


@lru_cache(maxsize=4096)
def field_mask(field: Field, text: str) -> int:
    """Return the values a field allows, as bits; raise InvalidCronExpression."""
    return mask_of(field, parse_field(field, text))


@lru_cache(maxsize=4096)
def minutes_a_quarter(text: str) -> tuple[int, ...]:
    """Return how many minutes of each quarter of an hour are allowed."""
    mask = field_mask(MINUTE, text)
    return tuple((mask >> 15 * quarter & _A_QUARTER).bit_count() for quarter in _QUARTERS)


@lru_cache(maxsize=1024)
def days_allowed(fields: tuple[str, ...], first: date, days: int) -> int:
    """Return which of some days the last three or four fields of a cron expression allow."""
    cron, found, begin = CronExpression.parse(f"0 0 0 {' '.join(fields)}"), 0, first
    if cron.days.entry_day > days_in_month(first.year, first.month):
        # "31W" from its start before: that search leaves a shorter month out, one that begins inside it does not
        begin = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    at = cron.next_from(datetime.combine(begin, datetime.min.time()))
    while at is not None and (number := (at.date() - first).days) < days:
        found |= 1 << number
        at = cron.next_after(at)
    return found


@lru_cache(maxsize=1024)
def unix_minutes(text: str) -> tuple[int, ...]:
    """Return how many minutes of each quarter of an hour the first of five fields allows."""
    minutes = [at // MINUTE_MS for at in _unix_fires([text, "*", "*", "*", "*"], _HOUR_MS)]
    return tuple(sum(minute // 15 == quarter for minute in minutes) for quarter in _QUARTERS)


@lru_cache(maxsize=1024)
def unix_hours(text: str) -> int:
    """Return the hours the second of five fields allows, as bits."""
    return sum(1 << at // _HOUR_MS for at in _unix_fires(["0", text, "*", "*", "*"], DAY_MS))


@lru_cache(maxsize=1024)
def unix_days(fields: tuple[str, ...], first: date, days: int) -> int:
    """Return which of some days the last three of five fields allow."""
    begin_ms = int(datetime.combine(first, datetime.min.time(), UTC).timestamp()) * SECOND_MS
    return sum(1 << at // DAY_MS for at in _unix_fires(["0", "0", *fields], days * DAY_MS, begin_ms))


def _unix_fires(fields: list[str], within_ms: Millis, begin_ms: Millis = _PLAIN_MS) -> list[Millis]:
    """Return how long after an instant a Unix cron fires, in a zone whose clocks never change."""
    found: list[Millis] = []
    at_ms = unix.next_after_ms(fields, begin_ms - SECOND_MS, UTC)
    while at_ms is not None and at_ms < begin_ms + within_ms:
        found.append(at_ms - begin_ms)
        at_ms = unix.next_after_ms(fields, at_ms, UTC)
    return found
