"""Effective instants by listing: all raw ones, all windows of blackouts, one rule after the other.

For the tests of app/domain/calendars and app/domain/completeness, of whose code it uses none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from zoneinfo import ZoneInfo

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.calendars.calendar import DayKind, UnknownDays
from app.domain.calendars.day_rule import DayRule, On, Otherwise
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_raw_ms


@dataclass(frozen=True)
class Listing:
    """What becomes of the raw instants of a schedule in a time with margins on both sides.

    Its parts are only complete for effective instants that do not depend on raw ones beyond the margins.
    """

    schedule: Schedule
    rule: DayRule | None
    blackouts: Sequence[Blackout]
    from_ms: Millis
    until_ms: Millis
    anchor_ms: Millis = 0
    #: due -> raw, of those that run at their own time or where the calendar has moved them
    left: dict[Millis, Millis] = field(default_factory=dict)
    #: raw instants that a calendar excludes
    off: list[Millis] = field(default_factory=list)
    #: due, of those that blackouts cover and that do not run at their end
    covered: list[Millis] = field(default_factory=list)
    #: due -> raw, of those that run at the end of blackouts
    at_ends: dict[Millis, Millis] = field(default_factory=dict)
    #: a blackout without an end covers one of them
    rests: list[Millis] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._follow_calendar()
        self._follow_blackouts()

    @property
    def effective(self) -> dict[Millis, Millis]:
        """Return due -> raw of all that run, ascending."""
        return dict(sorted((self.left | self.at_ends).items()))

    def _follow_calendar(self) -> None:
        placed: dict[Millis, Millis] = {}
        moved: list[tuple[Millis, Millis]] = []
        targets: dict[date, date | None] = {}
        for raw_ms in self.raw():
            day = self._local(raw_ms).date()
            if day not in targets:
                targets[day] = day if self._allows(day) else self._target(day)
            target = targets[day]
            if target is None:
                self.off.append(raw_ms)
            elif target == day:
                placed[raw_ms] = raw_ms
            else:
                moved.append((raw_ms, self._instant(datetime.combine(target, self._local(raw_ms).time()))))
        for raw_ms, due_ms in moved:
            if due_ms in placed:
                self.off.append(raw_ms)
            else:
                placed[due_ms] = raw_ms
        self.left.update({due_ms: raw_ms for due_ms, raw_ms in placed.items() if self._in_window(due_ms)})

    def _follow_blackouts(self) -> None:
        due = sorted(self.left)
        for from_ms, until_ms, runs_once in self.closures:
            covered = [at_ms for at_ms in due if from_ms <= at_ms and (until_ms is None or at_ms < until_ms)]
            raw = [self.left.pop(at_ms) for at_ms in covered]
            if until_ms is None:
                self.rests.extend(covered)
            elif covered and runs_once:
                end_ms = until_ms + (until_ms in due)
                if self._in_window(end_ms):
                    self.at_ends[end_ms] = raw[-1]
                    covered.pop()
            self.covered.extend(covered)

    def raw(self) -> Sequence[Millis]:
        """Return the instants of the expression, ascending."""
        plain = Schedule(self.schedule.type, self.schedule.conf, self.schedule.time_zone)
        return raw_instants(plain, self.from_ms, self.until_ms, self.anchor_ms)

    @cached_property
    def closures(self) -> list[tuple[Millis, Millis | None, bool]]:
        """Return the union of the windows of blackouts, and whether any of a part runs once; ascending."""
        found: list[tuple[Millis, Millis | None, bool]] = []
        for from_ms, until_ms, runs_once in sorted(self._windows(), key=lambda window: window[0]):
            last = found[-1] if found else None
            if last is None or (last[1] is not None and last[1] < from_ms):
                found.append((from_ms, until_ms, runs_once))
                continue
            ends = None if last[1] is None or until_ms is None else max(last[1], until_ms)
            found[-1] = (last[0], ends, last[2] or runs_once)
        return found

    def _windows(self) -> Iterable[tuple[Millis, Millis | None, bool]]:
        for blackout in self.blackouts:
            runs_once = blackout.afterwards is Afterwards.RUN_ONCE
            if not blackout.cron:
                yield blackout.from_ms, blackout.until_ms, runs_once
                continue
            cron, at_ms = Schedule(ScheduleType.CRON, blackout.cron, blackout.zone), self.from_ms - 3 * DAY_MS
            while (begin_ms := next_raw_ms(cron, at_ms)) is not None and begin_ms < self.until_ms:
                end_ms = begin_ms + blackout.duration_s * 1_000
                from_ms = max(begin_ms, blackout.from_ms)
                until_ms = end_ms if blackout.until_ms is None else min(end_ms, blackout.until_ms)
                if from_ms < until_ms:
                    yield from_ms, until_ms, runs_once
                at_ms = begin_ms

    def _allows(self, day: date) -> bool:
        if self.rule is None:
            return True
        kind, nth = self._kind(day), self.rule.rule.nth
        if (kind is DayKind.WORKDAY) != (self.rule.rule.on is On.WORKDAYS):
            return False
        if nth is None:
            return True
        first = day.replace(day=1)
        month = [first + timedelta(number) for number in range(31)]
        same = [each for each in month if each.month == day.month and self._kind(each) is kind]
        return same.index(day) == (len(same) - 1 if nth == -1 else nth - 1)

    def _kind(self, day: date) -> DayKind:
        assert self.rule is not None
        calendar = self.rule.calendar
        by_weekday = DayKind.HOLIDAY if day.isoweekday() in calendar.weekend else DayKind.WORKDAY
        if day in calendar.days:
            return calendar.days[day]
        if calendar.valid_until is None or day <= calendar.valid_until:
            return by_weekday
        unknown = {UnknownDays.HOLIDAY: DayKind.HOLIDAY, UnknownDays.WORKDAY: DayKind.WORKDAY}
        return unknown.get(calendar.unknown, by_weekday)

    def _target(self, day: date) -> date | None:
        if self.rule is None or self.rule.rule.otherwise is Otherwise.SKIP:
            return None
        if self.schedule.type is not ScheduleType.CRON:
            return None
        sign = 1 if self.rule.rule.otherwise is Otherwise.NEXT else -1
        days = (day + timedelta(sign * number) for number in range(1, 32))
        return next((each for each in days if self._allows(each)), None)

    def _local(self, at_ms: Millis) -> datetime:
        local = datetime.fromtimestamp(at_ms / 1_000, ZoneInfo(self.schedule.time_zone))
        return local.replace(tzinfo=None, fold=0)

    def _instant(self, wall: datetime) -> Millis:
        """Return the first instant whose local time is the given one, or is later, minute by minute."""
        as_utc_ms = int(wall.replace(tzinfo=UTC, second=0).timestamp()) * 1_000
        guess_ms = int(wall.replace(tzinfo=ZoneInfo(self.schedule.time_zone)).timestamp()) * 1_000
        if self._local(guess_ms) == wall:
            return guess_ms
        at_ms = as_utc_ms - 15 * 60 * MINUTE_MS
        while self._local(at_ms) < wall:
            at_ms += MINUTE_MS
        return at_ms

    def _in_window(self, at_ms: Millis) -> bool:
        not_after_ms = self.schedule.not_after_ms
        return self.schedule.not_before_ms <= at_ms and (not not_after_ms or at_ms <= not_after_ms)


@lru_cache(maxsize=4)
def raw_instants(
    schedule: Schedule, from_ms: Millis, until_ms: Millis, anchor_ms: Millis
) -> Sequence[Millis]:
    """Return the instants of an expression, ascending; several listings of a case have the same."""
    if schedule.type is ScheduleType.FIX_RATE:
        period_ms = int(schedule.conf) * 1_000
        return [at_ms for at_ms in range(anchor_ms, until_ms, period_ms) if at_ms >= from_ms]
    found: list[Millis] = []
    at_ms = from_ms - 1
    while (next_ms := next_raw_ms(schedule, at_ms)) is not None and next_ms < until_ms:
        found.append(next_ms)
        at_ms = next_ms
    return found
