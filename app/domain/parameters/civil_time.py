"""Civil arithmetic of logical times: steps by units, and to the begin or end of periods, in a zone.

Years, months, weeks and days move the date and keep the time of day; hours, minutes and seconds move the
instant. A civil time that clocks skip becomes the first instant after the gap; of one that occurs twice it is
the one with the offset it came from, else the first.
"""

from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from app.clock import LATEST_MS, SECOND_MS, Millis
from app.domain.parameters.placeholders import Edge, Period, Shift
from app.domain.schedules.cron.local_time import first_second_after_gap

#: years of local times, inclusive
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 9998
_LATEST_S: Final = LATEST_MS // SECOND_MS
_DAY_S: Final = 86_400
_EPOCH: Final = datetime(1970, 1, 1)
_SECOND: Final = timedelta(seconds=1)
_ORDINALS: Final = range(date(FIRST_YEAR, 1, 1).toordinal(), date(LAST_YEAR, 12, 31).toordinal() + 1)


class YearOutOfRange(ValueError):
    """A local time lies before FIRST_YEAR or after LAST_YEAR."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Instant with its local time in a zone, which has an offset and no fraction of a second."""

    second: int
    #: milliseconds beyond the second, which no step changes
    rest_ms: int
    local: datetime

    @property
    def at_ms(self) -> Millis:
        """The instant."""
        return self.second * SECOND_MS + self.rest_ms


def move(at_ms: Millis, zone: ZoneInfo, steps: Iterable[Shift | Edge]) -> Moment:
    """Return an instant after the steps, from left to right; raise YearOutOfRange."""
    second, rest_ms = divmod(at_ms, SECOND_MS)
    local = _local(second, zone)
    for step in steps:
        if isinstance(step, Shift) and step.seconds:
            second += step.seconds
        else:
            wall = local.replace(tzinfo=None, fold=0)
            target = _shift(wall, step) if isinstance(step, Shift) else _edge(wall, step)
            second = _second_of(target, zone, local.utcoffset())
        local = _local(second, zone)
    return Moment(second, rest_ms, local)


def _local(second: int, zone: ZoneInfo) -> datetime:
    if not -_DAY_S <= second <= _LATEST_S + _DAY_S:
        raise YearOutOfRange
    local = datetime.fromtimestamp(second, zone)
    if not FIRST_YEAR <= local.year <= LAST_YEAR:
        raise YearOutOfRange
    return local


def _second_of(wall: datetime, zone: ZoneInfo, offset: timedelta | None) -> int:
    """Return the instant of a local time; of two the one with this offset, else the first."""
    before, after = zone.utcoffset(wall), zone.utcoffset(wall.replace(fold=1))
    assert before is not None, "a zone without offsets"
    assert after is not None, "a zone without offsets"
    if before < after:
        return first_second_after_gap(wall, zone)
    return (wall - _EPOCH - (after if after == offset else before)) // _SECOND


def _shift(wall: datetime, step: Shift) -> datetime:
    if step.months:
        month = wall.year * 12 + wall.month - 1 + step.months
        return _with_date(wall, month // 12, month % 12 + 1, wall.day)
    if wall.toordinal() + step.days not in _ORDINALS:
        raise YearOutOfRange
    return wall + timedelta(days=step.days)


def _with_date(wall: datetime, year: int, month: int, day: int) -> datetime:
    """Return the time on another date; a day beyond the end of the month becomes its last."""
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise YearOutOfRange
    return wall.replace(year=year, month=month, day=min(day, monthrange(year, month)[1]))


def _edge(wall: datetime, step: Edge) -> datetime:
    match step.period:
        case Period.YEAR:
            return _month_edge(wall, 12 if step.is_last else 1, step)
        case Period.QUARTER:
            first = (wall.month - 1) // 3 * 3 + 1
            return _month_edge(wall, first + 2 if step.is_last else first, step)
        case Period.MONTH:
            return _month_edge(wall, wall.month, step)
        case Period.WEEK:
            weekday = wall.weekday()
            return _shift(wall, Shift(days=6 - weekday if step.is_last else -weekday))
        case Period.DAY:
            return datetime.combine(wall.date(), time(23, 59, 59) if step.is_last else time())
        case Period.HOUR:
            edge = 59 if step.is_last else 0
            return wall.replace(minute=edge, second=edge)


def _month_edge(wall: datetime, month: int, step: Edge) -> datetime:
    return _with_date(wall, wall.year, month, 31 if step.is_last else 1)
