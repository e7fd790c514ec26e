"""Effective instants: those of a schedule that its calendar and the blackouts leave, where they leave them.

expression → calendar → shift → window → blackout, by civil days in the zone of the schedule. Source:
docs/reference/calendars.md, sections 2 to 4.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from app.clock import DAY_MS, LATEST_MS, SECOND_MS, Millis
from app.domain.calendars.blackouts import Blackout, Closure, closure_of_hour
from app.domain.calendars.day_rule import REACH_DAYS, DayRule
from app.domain.enums import ScheduleType
from app.domain.schedules.cron.local_time import find_second, first_second_after_gap
from app.domain.schedules.planning import latest_until
from app.domain.schedules.schedule import NEXT_TIMES_KEPT, RESTING, Schedule, next_raw_ms, period_s, zone

#: of instants that are all excluded so many are looked at: those up to so long after the first one
REACH_MS: Millis = REACH_DAYS * DAY_MS
#: so many blackouts that cover all instants one after the other are looked at
COVERED_MAX: Final = 5_000

NextAfter = Callable[[Millis], Millis | None]


class StartKind(StrEnum):
    """Where an effective instant comes from."""

    #: the expression itself
    REGULAR = "regular"
    #: another day, by the calendar
    MOVED = "moved"
    #: the end of a blackout, for the latest instant that it has covered
    RUN_ONCE = "run_once"


class Start(NamedTuple):
    """Instant at which a schedule runs."""

    due_ms: Millis
    #: instant of the expression that it stands for
    logical_ms: Millis
    kind: StartKind = StartKind.REGULAR


class Merge(NamedTuple):
    """Instant that is not moved, because the schedule has one already at the time it would move to."""

    logical_ms: Millis
    into_ms: Millis


@dataclass(frozen=True, slots=True)
class JobRules:
    """Rules of one job: its day rule and the blackouts that concern it."""

    day_rule: DayRule | None = None
    blackouts: tuple[Blackout, ...] = ()
    #: first instant of a fixed rate; 0: unknown, it counts from where a search begins
    anchor_ms: Millis = 0

    def next_after_ms(self, schedule: Schedule, after_ms: Millis) -> Millis | None:
        """Return the first effective instant strictly after one; None if there is none, or RESTING."""
        start = _next(self, schedule, after_ms)
        return start.due_ms if isinstance(start, Start) else start

    def start_at(self, schedule: Schedule, due_ms: Millis) -> Start:
        """Return what an effective instant stands for; of one that is none, itself."""
        start = _next(self, schedule, due_ms - 1)
        return start if isinstance(start, Start) and start.due_ms == due_ms else Start(due_ms, due_ms)

    def closure_at(self, at_ms: Millis) -> Closure | None:
        """Return the time around an instant in which the job must not start; None: it may."""
        return closure_of_hour(self.blackouts, at_ms) if self.blackouts else None

    def covered_until(self, schedule: Schedule, after_ms: Millis) -> Millis | None:
        """Return the end of the blackout that covers the first instant after one; None: there is none.

        Of a fixed rate the first time from then on that is in its phase.
        """
        start = self._allowed_after(schedule, after_ms)(after_ms)
        closure = None if start is None else self.closure_at(start.due_ms)
        if closure is None or closure.until_ms is None or schedule.type is not ScheduleType.FIX_RATE:
            return None if closure is None else closure.until_ms
        return self.raw_after(schedule, after_ms)(closure.until_ms - 1)

    def run_once(self, schedule: Schedule, closure: Closure) -> Start | None:
        """Return what runs at the end of a closure for the instants that it has covered; None: nothing."""
        return self._run_once(schedule, closure, self._allowed_after(schedule, closure.from_ms - 1))

    def search(self, schedule: Schedule, after_ms: Millis) -> Start | Millis | None:
        """Return what ``next_after_ms`` does, with what it stands for."""
        if schedule.type is ScheduleType.FIX_DELAY:
            return self._next_delay(schedule, after_ms)
        allowed_after = self._allowed_after(schedule, after_ms)
        if not self.blackouts:
            return allowed_after(after_ms)
        closure = self.closure_at(after_ms) or self.closure_at(after_ms - 1)
        pending = None if closure is None else self._run_once(schedule, closure, allowed_after)
        if pending is not None and pending.due_ms <= after_ms:
            pending = None
        at_ms, until_ms = after_ms, 0
        if closure is not None and closure.covers(after_ms):
            if closure.until_ms is None:
                return None if allowed_after(after_ms) is None else RESTING
            at_ms = closure.until_ms - 1
        for _ in range(COVERED_MAX):
            if (start := allowed_after(at_ms)) is None:
                return pending
            until_ms = until_ms or start.due_ms + REACH_MS
            if start.due_ms > until_ms or (pending is not None and pending.due_ms < start.due_ms):
                return pending
            closure = self.closure_at(start.due_ms)
            if closure is None:
                return start
            if closure.until_ms is None:
                return RESTING
            pending = self._run_once(schedule, closure, allowed_after)
            at_ms = closure.until_ms - 1
        return pending

    def _next_delay(self, schedule: Schedule, after_ms: Millis) -> Millis | None:
        """Return when a fixed delay is due: within a blackout, at its end."""
        due_ms = next_raw_ms(schedule, after_ms)
        if due_ms is None or (closure := self.closure_at(due_ms)) is None:
            return due_ms
        if closure.until_ms is None:
            return RESTING
        return closure.until_ms if is_within(schedule, closure.until_ms) else None

    def _run_once(
        self, schedule: Schedule, closure: Closure, allowed_after: "Callable[[Millis], Start | None]"
    ) -> Start | None:
        if not closure.runs_once or closure.until_ms is None:
            return None
        first = allowed_after(closure.from_ms - 1)
        if first is None or first.due_ms >= closure.until_ms:
            return None

        def next_due(at_ms: Millis) -> Millis | None:
            start = allowed_after(at_ms)
            return None if start is None else start.due_ms

        last_ms = latest_until(closure.until_ms - 1, next_due)
        last = allowed_after(last_ms - 1)
        # An instant at the end itself runs besides, as early as it can be distinguished.
        due_ms = closure.until_ms + int(next_due(closure.until_ms - 1) == closure.until_ms)
        if last is None or not is_within(schedule, due_ms):
            return None
        return Start(due_ms, last.logical_ms, StartKind.RUN_ONCE)

    def _allowed_after(self, schedule: Schedule, after_ms: Millis) -> "Callable[[Millis], Start | None]":
        """Return the search for the first instant after one that calendar and window leave.

        ``after_ms``: from there a fixed rate counts whose first instant is unknown.
        """
        raw_after = self.raw_after(schedule, after_ms)
        rule = self.day_rule
        if rule is not None and rule.moves and schedule.type is ScheduleType.CRON:
            return lambda at_ms: _next_moved(schedule, rule, raw_after, at_ms)
        return lambda at_ms: _next_allowed(schedule, rule, raw_after, at_ms)

    def raw_after(self, schedule: Schedule, after_ms: Millis) -> NextAfter:
        """Return the search for the first instant of the expression alone, without its window."""
        if schedule.type is not ScheduleType.FIX_RATE:
            plain = Schedule(schedule.type, schedule.conf, schedule.time_zone)
            return lambda at_ms: next_raw_ms(plain, at_ms)
        period_ms = period_s(schedule.conf) * SECOND_MS
        first_ms = self.anchor_ms or max(after_ms + period_ms, schedule.not_before_ms)

        def next_of_rate(at_ms: Millis) -> Millis:
            return max(first_ms, first_ms + ((at_ms - first_ms) // period_ms + 1) * period_ms)

        return next_of_rate


@lru_cache(maxsize=NEXT_TIMES_KEPT)
def _next(rules: JobRules, schedule: Schedule, after_ms: Millis) -> Start | Millis | None:
    """Cached, since jobs with equal expressions often fall due together, and a change plans all anew."""
    return rules.search(schedule, after_ms)


def is_within(schedule: Schedule, at_ms: Millis) -> bool:
    """Whether an instant lies in the window of a schedule."""
    return schedule.not_before_ms <= at_ms and (not schedule.not_after_ms or at_ms <= schedule.not_after_ms)


def _next_allowed(
    schedule: Schedule, rule: DayRule | None, raw_after: NextAfter, after_ms: Millis
) -> Start | None:
    """Return the first instant in the window that is on an allowed day."""
    tz, at_ms = zone(schedule.time_zone), max(after_ms, schedule.not_before_ms - 1)
    until_ms = 0
    while (raw_ms := raw_after(at_ms)) is not None and raw_ms < LATEST_MS:
        until_ms = until_ms or raw_ms + REACH_MS
        if schedule.not_after_ms and raw_ms > schedule.not_after_ms:
            return None
        if rule is None:
            return Start(raw_ms, raw_ms)
        day = datetime.fromtimestamp(raw_ms // SECOND_MS, tz).date()
        if rule.allows(day):
            return Start(raw_ms, raw_ms)
        next_day = rule.first_allowed(day)
        if next_day is None or raw_ms > until_ms:
            return None
        at_ms = day_start(next_day, schedule.time_zone) - 1
    return None


def _next_moved(schedule: Schedule, rule: DayRule, raw_after: NextAfter, after_ms: Millis) -> Start | None:
    """Return the first instant in the window, where the rule has moved it to."""
    tz, at_ms = zone(schedule.time_zone), max(after_ms, schedule.not_before_ms - 1)
    if at_ms >= LATEST_MS:
        return None
    target = rule.first_allowed(datetime.fromtimestamp(at_ms // SECOND_MS, tz).date())
    if target is None:
        return None
    source_ms = day_start(min([target, *rule.sources(target)]), schedule.time_zone) - 1
    until_ms = max(at_ms, raw_after(at_ms) or 0) + REACH_MS
    while (raw_ms := raw_after(source_ms)) is not None and raw_ms <= until_ms:
        day = datetime.fromtimestamp(raw_ms // SECOND_MS, tz).date()
        target = rule.target(day)
        if target is None:
            source_ms = day_start(day + timedelta(1), schedule.time_zone) - 1
            continue
        starts = starts_on(schedule.conf, schedule.time_zone, rule, target).starts
        index = bisect_right(starts, at_ms, key=lambda start: start.due_ms)
        if index < len(starts):
            start = starts[index]
            return start if is_within(schedule, start.due_ms) else None
        last = max([target, *rule.sources(target)])
        source_ms = max(source_ms, day_start(last + timedelta(1), schedule.time_zone) - 1)
    return None


class StartsOfDay(NamedTuple):
    """Instants of a cron on an allowed day, with those that are moved to it."""

    #: ascending
    starts: Sequence[Start]
    merges: Sequence[Merge]


@lru_cache(maxsize=4_096)
def starts_on(conf: str, time_zone: str, rule: DayRule, target: date) -> StartsOfDay:
    """Return when a cron runs on an allowed day: its own instants, and those that are moved to it.

    Of two at one time its own comes first, then the one of the earlier day.
    """
    schedule = Schedule(ScheduleType.CRON, conf, time_zone)
    starts = {raw_ms: Start(raw_ms, raw_ms) for raw_ms in raw_of_day(schedule, target)}
    tz, merges = zone(time_zone), list[Merge]()
    for day in rule.sources(target):
        for raw_ms in raw_of_day(schedule, day):
            wall = datetime.fromtimestamp(raw_ms // SECOND_MS, tz).replace(tzinfo=None).time()
            due_ms = instant_of(target, wall, time_zone)
            if due_ms in starts:
                merges.append(Merge(raw_ms, due_ms))
            else:
                starts[due_ms] = Start(due_ms, raw_ms, StartKind.MOVED)
    return StartsOfDay(sorted(starts.values()), merges)


def raw_of_day(schedule: Schedule, day: date) -> Iterator[Millis]:
    """Yield the instants of a cron on a civil day, whatever its calendar is."""
    plain = replace(schedule, rules=None, not_before_ms=0, not_after_ms=0)
    at_ms, end_ms = day_start(day, schedule.time_zone) - 1, day_start(day + timedelta(1), schedule.time_zone)
    while (next_ms := next_raw_ms(plain, at_ms)) is not None and next_ms < end_ms:
        yield next_ms
        at_ms = next_ms


@lru_cache(maxsize=16_384)
def day_start(day: date, time_zone: str) -> Millis:
    """Return the first instant of a civil day."""
    return instant_of(day, time.min, time_zone)


def instant_of(day: date, wall: time, time_zone: str) -> Millis:
    """Return the instant of a time of day: the first of two, or the first after a gap."""
    local, tz = datetime.combine(day, wall), zone(time_zone)
    second = find_second(local, tz, fold=0)
    return (first_second_after_gap(local, tz) if second is None else second) * SECOND_MS
