"""Clock changes: local times of a schedule that do not exist or occur twice, and what runs then.

A schedule of every hour goes on across a change, and a fixed rate or delay counts seconds: neither has
any.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from app.clock import SECOND_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.schedules.cron.local_time import find_second
from app.domain.schedules.schedule import Schedule, is_hourly, next_after_ms, zone

#: days that are looked at, from now on
YEAR_DAYS: Final = 366
#: local times of a change that are named; a schedule of every second has thousands
NAMED_TIMES: Final = 3
_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600
_EPOCH: Final = datetime(1970, 1, 1)
_NO_TIMES: Final = frozenset({ScheduleType.NONE, ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY})


class Silence(StrEnum):
    """Why a valid schedule never fires again."""

    WINDOW = "window"
    CLOCKS = "clocks"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class ClockChange:
    """Change of the clocks that a schedule meets.

    ``local_times`` has the first ones, naive. ``runs_ms`` are the runs of the first of them: none, one or, if
    it occurs twice, two.
    """

    at_ms: Millis
    #: by how much the clocks go forward; negative if they go back
    shift: timedelta
    local_times: tuple[datetime, ...]
    has_more: bool
    runs_ms: tuple[Millis, ...]

    @property
    def is_gap(self) -> bool:
        """Whether the local times do not exist; otherwise they occur twice."""
        return self.shift > timedelta()


def clock_changes(schedule: Schedule, *, now_ms: Millis) -> list[ClockChange]:
    """Return the changes within a year that a valid schedule meets, in order."""
    if schedule.type in _NO_TIMES or is_hourly(schedule):
        return []
    tz = zone(schedule.time_zone)
    changes = []
    for at_s, shift in _shifts(schedule.time_zone, now_ms // SECOND_MS // _DAY_S):
        change = _change(schedule, tz, at_s, shift)
        if change is not None and at_s * SECOND_MS > now_ms and _is_within(schedule, change):
            changes.append(change)
    return changes


def silence_of(schedule: Schedule, *, now_ms: Millis) -> Silence | None:
    """Return why a valid schedule never fires after now; None if it does."""
    if next_after_ms(schedule, now_ms) is not None:
        return None
    endless = replace(schedule, not_after_ms=0)
    if next_after_ms(endless, now_ms) is not None:
        return Silence.WINDOW
    if schedule.type is ScheduleType.CRON and next_after_ms(replace(endless, time_zone="UTC"), now_ms):
        return Silence.CLOCKS
    return Silence.PAST


def _change(schedule: Schedule, tz: ZoneInfo, at_s: int, shift: timedelta) -> ClockChange | None:
    """Return the change at a second as the schedule meets it; None if none of its times is in it."""
    after = _local(at_s, tz)
    first = after - shift if shift > timedelta() else after
    times = _times_between(schedule, first, first + abs(shift))
    if not times:
        return None
    runs = _runs_after_gap(schedule, tz, at_s) if shift > timedelta() else _runs_of(schedule, tz, times[0])
    return ClockChange(at_s * SECOND_MS, shift, times[:NAMED_TIMES], len(times) > NAMED_TIMES, runs)


def _times_between(schedule: Schedule, first: datetime, end: datetime) -> tuple[datetime, ...]:
    """Return the first local times of a schedule, as if each existed once: those that it has in UTC."""
    plain = replace(schedule, time_zone="UTC", not_before_ms=0, not_after_ms=0)
    times: list[datetime] = []
    at_ms: Millis | None = _as_utc_ms(first) - SECOND_MS
    while len(times) <= NAMED_TIMES and at_ms is not None:
        at_ms = next_after_ms(plain, at_ms)
        if at_ms is None or at_ms >= _as_utc_ms(end):
            break
        times.append(_EPOCH + timedelta(milliseconds=at_ms))
    return tuple(times)


def _runs_after_gap(schedule: Schedule, tz: ZoneInfo, at_s: int) -> tuple[Millis, ...]:
    """Return the run right after a gap if it stands for times in it: five fields and AT are moved there."""
    run_ms = next_after_ms(schedule, at_s * SECOND_MS - SECOND_MS)
    if run_ms is None or run_ms >= (at_s + _HOUR_S) * SECOND_MS:
        return ()
    local = _local(run_ms // SECOND_MS, tz)
    is_own = _times_between(schedule, local, local + timedelta(seconds=1))
    return () if is_own else (run_ms,)


def _runs_of(schedule: Schedule, tz: ZoneInfo, local: datetime) -> tuple[Millis, ...]:
    """Return the runs of a local time that occurs twice."""
    seconds = (find_second(local, tz, fold=fold) for fold in (0, 1))
    instants = [second * SECOND_MS for second in seconds if second is not None]
    return tuple(at_ms for at_ms in instants if next_after_ms(schedule, at_ms - SECOND_MS) == at_ms)


def _is_within(schedule: Schedule, change: ClockChange) -> bool:
    return schedule.not_before_ms <= change.at_ms and not 0 < schedule.not_after_ms < change.at_ms


@lru_cache(maxsize=256)
def _shifts(name: str, first_day: int) -> tuple[tuple[int, timedelta], ...]:
    """Return the seconds at which the clocks of a zone change within a year of a day, and by how much."""
    tz = zone(name)
    days = range(first_day * _DAY_S, (first_day + YEAR_DAYS + 1) * _DAY_S, _DAY_S)
    return tuple(
        (_first_second(tz, before, after), _offset(after, tz) - _offset(before, tz))
        for before, after in pairwise(days)
        if _offset(before, tz) != _offset(after, tz)
    )


def _first_second(tz: ZoneInfo, before: int, after: int) -> int:
    """Return the first second with the offset of ``after``."""
    offset = _offset(after, tz)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _offset(middle, tz) == offset else (middle, after)
    return after


def _local(second: int, tz: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(second, tz).replace(tzinfo=None, fold=0)


def _offset(second: int, tz: ZoneInfo) -> timedelta:
    return datetime.fromtimestamp(second, tz).utcoffset() or timedelta()


def _as_utc_ms(local: datetime) -> Millis:
    return int(local.replace(tzinfo=UTC).timestamp()) * SECOND_MS
