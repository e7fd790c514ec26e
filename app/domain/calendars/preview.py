"""Preview of instants: what becomes of each instant of a schedule by its calendar and blackouts, and why."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from app.clock import DAY_MS, LATEST_MS, SECOND_MS, Millis
from app.domain.calendars.calendar import DayKind
from app.domain.calendars.day_rule import SHIFT_DAYS_MAX, DayRule
from app.domain.calendars.effective import REACH_MS, JobRules, day_start, instant_of, is_within, starts_on
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, zone

#: instants on the days before a time that may be moved behind it
_BEFORE_MS: Final[Millis] = (SHIFT_DAYS_MAX + 1) * DAY_MS


class Fate(StrEnum):
    """What becomes of an instant of the expression."""

    RUNS = "runs"
    #: it runs on another day
    MOVED = "moved"
    #: by the calendar
    SKIPPED = "skipped"
    #: the schedule has an instant already at the time it would move to
    MERGED = "merged"
    #: a blackout covers it; with ``due_ms`` it runs at the end
    BLACKOUT = "blackout"


class PreviewInstant(NamedTuple):
    """An instant of the expression, and what becomes of it."""

    raw_ms: Millis
    fate: Fate
    #: when it runs; None: it does not
    due_ms: Millis | None = None
    #: what its day is by the calendar; None: there is no calendar
    day_kind: DayKind | None = None
    #: such as 国庆节
    day_name: str = ""
    #: whether its day has that kind by its weekday alone
    by_weekday: bool = False
    #: whether the calendar knows its day
    is_known: bool = True
    #: instant that it is merged into
    into_ms: Millis | None = None
    #: of a blackout
    reason: str = ""
    #: further ones of the day share its fate
    has_more: bool = False


def preview(schedule: Schedule, after_ms: Millis, count: int, *, most: int) -> list[PreviewInstant]:
    """Return the coming instants until ``count`` of them run, ``most`` at most, ascending by ``raw_ms``."""
    result: list[PreviewInstant] = []
    for instant in instants(schedule, after_ms):
        result.append(instant)
        count -= instant.due_ms is not None
        if not count or len(result) == most:
            break
    return result


def logical_times(schedule: Schedule, due_times: Iterable[Millis]) -> list[Millis]:
    """Return what the effective instants of a schedule stand for."""
    rules = schedule.rules
    if not isinstance(rules, JobRules) or schedule.type is ScheduleType.FIX_DELAY:
        return list(due_times)
    return [rules.start_at(schedule, due_ms).logical_ms for due_ms in due_times]


def instants(schedule: Schedule, after_ms: Millis) -> Iterator[PreviewInstant]:
    """Yield the instants of a schedule that are still to come, ascending by ``raw_ms``, for two years.

    One that is moved comes when it runs. Of those of a day that do not run for one reason only the first is
    yielded. A fixed delay has none, as they depend on how long runs take.
    """
    if schedule.type in {ScheduleType.FIX_DELAY, ScheduleType.NONE}:
        return
    finder = _Finder(schedule, after_ms)
    raw_after, at_ms = finder.rules.raw_after(schedule, after_ms), finder.begin_ms
    while (raw_ms := raw_after(at_ms)) is not None and raw_ms <= finder.end_ms:
        instant, at_ms = finder.fate_of(raw_ms)
        if instant is None:
            continue
        following_ms = raw_after(raw_ms) if at_ms > raw_ms else None
        has_more = following_ms is not None and following_ms <= at_ms
        if (raw_ms if instant.due_ms is None else instant.due_ms) > after_ms:
            yield instant._replace(has_more=has_more)


class _Finder:
    """Finds what becomes of the instants of a schedule."""

    def __init__(self, schedule: Schedule, after_ms: Millis) -> None:
        self._schedule = schedule
        self.rules = schedule.rules if isinstance(schedule.rules, JobRules) else JobRules()
        self._day_rule = self.rules.day_rule
        is_cron = schedule.type is ScheduleType.CRON
        self._moving = self._day_rule is not None and self._day_rule.moves and is_cron
        before_ms = _BEFORE_MS if self._moving else 0
        self.begin_ms = max(after_ms, schedule.not_before_ms - 1) - before_ms
        until_ms = min(schedule.not_after_ms or LATEST_MS, LATEST_MS - 1) + before_ms
        self.end_ms = min(self.begin_ms + before_ms + REACH_MS, until_ms)

    def fate_of(self, raw_ms: Millis) -> tuple[PreviewInstant | None, Millis]:
        """Return what becomes of an instant, and the time up to which all others share that.

        None: it lies beyond the bounds of the schedule.
        """
        tz = zone(self._schedule.time_zone)
        local = datetime.fromtimestamp(raw_ms // SECOND_MS, tz).replace(tzinfo=None)
        day, instant = local.date(), PreviewInstant(raw_ms, Fate.RUNS, raw_ms)
        if self._day_rule is not None:
            instant = _of_day(instant, self._day_rule, day)
            target = self._day_rule.target(day)
            if target is None:
                skip = instant._replace(fate=Fate.SKIPPED, due_ms=None)
                return self._within(skip, raw_ms), self._end_of(day)
            if target != day:
                due_ms = instant_of(target, local.time(), self._schedule.time_zone)
                if self._is_merged(raw_ms, target, self._day_rule):
                    merge = instant._replace(fate=Fate.MERGED, due_ms=None, into_ms=due_ms)
                    return self._within(merge, due_ms), raw_ms
                instant = instant._replace(fate=Fate.MOVED, due_ms=due_ms)
        if instant.due_ms is not None and self._within(instant, instant.due_ms) is None:
            return None, raw_ms
        return self._in_blackouts(instant, day)

    def _in_blackouts(self, instant: PreviewInstant, day: date) -> tuple[PreviewInstant, Millis]:
        closure = None if instant.due_ms is None else self.rules.closure_at(instant.due_ms)
        if closure is None:
            return instant, instant.raw_ms
        pause = instant._replace(fate=Fate.BLACKOUT, due_ms=None, reason=closure.blackout.reason)
        once = self.rules.run_once(self._schedule, closure)
        if once is not None and once.logical_ms == instant.raw_ms:
            return pause._replace(due_ms=once.due_ms), instant.raw_ms
        if self._moving:
            return pause, instant.raw_ms
        ends = [self._end_of(day)]
        ends += [] if closure.until_ms is None else [closure.until_ms - 1]
        ends += [] if once is None else [once.logical_ms - 1]
        return pause, min(ends)

    def _is_merged(self, raw_ms: Millis, target: date, rule: DayRule) -> bool:
        of_day = starts_on(self._schedule.conf, self._schedule.time_zone, rule, target)
        return any(merge.logical_ms == raw_ms for merge in of_day.merges)

    def _within(self, instant: PreviewInstant, at_ms: Millis) -> PreviewInstant | None:
        return instant if is_within(self._schedule, at_ms) else None

    def _end_of(self, day: date) -> Millis:
        return day_start(day + timedelta(1), self._schedule.time_zone) - 1


def _of_day(instant: PreviewInstant, rule: DayRule, day: date) -> PreviewInstant:
    calendar = rule.calendar
    return instant._replace(
        day_kind=calendar.kind_of(day),
        day_name=calendar.names.get(day, ""),
        by_weekday=day not in calendar.days,
        is_known=calendar.is_known(day),
    )
