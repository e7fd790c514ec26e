"""Expected instants of a job with a calendar or blackouts: those that run, and those that are excluded.

Source: docs/reference/completeness.md, docs/reference/calendars.md, section 6.
"""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from app.clock import SECOND_MS, Millis
from app.domain.calendars.blackouts import Closure, closures_shared
from app.domain.calendars.day_rule import DayRule
from app.domain.calendars.effective import JobRules, Start, day_start, is_within, raw_of_day, starts_on
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, zone

#: reasons of excluded instants
CALENDAR: Final = "calendar"
BLACKOUT: Final = "blackout"

#: returns the instants of the expression alone later than one and up to another, in blocks, ascending
RawBlocks = Callable[[Millis, Millis], Iterator[Collection[Millis]]]


class Exclusion(NamedTuple):
    """Instants that are excluded for one reason, ascending."""

    reason: str
    instants: Collection[Millis]
    #: the blackouts that are on then
    closure: Closure | None = None


class _Segment(NamedTuple):
    """Time from ``from_ms`` to before ``until_ms`` in which all instants have one fate."""

    from_ms: Millis
    until_ms: Millis
    #: empty: they run
    reason: str
    closure: Closure | None = None


class RuledInstants:
    """Instants of a schedule with rules, later than ``after_ms`` and up to ``last_ms``."""

    def __init__(
        self, schedule: Schedule, rules: JobRules, raw_blocks: RawBlocks, after_ms: Millis, last_ms: Millis
    ) -> None:
        self._schedule, self._rules, self._raw_blocks = schedule, rules, raw_blocks
        self._after_ms, self._last_ms = after_ms, last_ms
        rule = rules.day_rule
        self._moving: DayRule | None = (
            rule if rule is not None and rule.moves and schedule.type is ScheduleType.CRON else None
        )

    def __iter__(self) -> Iterator[Millis]:
        """Yield those that run, ascending."""
        if self._moving is not None:
            yield from self._moved_instants()
            return
        own = chain.from_iterable(block for segment in self._segments("") for block in self._blocks(segment))
        yield from heapq.merge(own, self._run_once())

    def count(self) -> int:
        """Return how many run."""
        if self._moving is not None:
            return sum(1 for _ in self)
        own = sum(len(block) for segment in self._segments("") for block in self._blocks(segment))
        return own + len(self._run_once())

    def exclusions(self) -> Iterator[Exclusion]:
        """Yield those that do not run; without the latest of a blackout that runs once, which runs later."""
        if self._moving is not None:
            yield from self._not_moved(self._moving)
            return
        for segment in self._segments(CALENDAR, BLACKOUT):
            for block in self._blocks(segment):
                left = self._without_last(block, segment.closure)
                if left:
                    yield Exclusion(segment.reason, left, segment.closure)

    def _blocks(self, segment: _Segment) -> Iterator[Collection[Millis]]:
        return self._raw_blocks(segment.from_ms - 1, segment.until_ms - 1)

    def _segments(self, *reasons: str) -> Iterator[_Segment]:
        """Yield the times in which instants have one of these fates; empty: they run."""
        for segment in self._all_segments():
            if segment.reason in reasons:
                yield segment

    def _all_segments(self) -> Iterator[_Segment]:
        for from_ms, until_ms, is_allowed in self._runs_of_days():
            if not is_allowed:
                yield _Segment(from_ms, until_ms, CALENDAR)
                continue
            at_ms = from_ms
            for closure in closures_shared(self._rules.blackouts, from_ms, until_ms):
                begin_ms = max(closure.from_ms, at_ms)
                if begin_ms > at_ms:
                    yield _Segment(at_ms, begin_ms, "")
                at_ms = until_ms if closure.until_ms is None else min(closure.until_ms, until_ms)
                yield _Segment(begin_ms, at_ms, BLACKOUT, closure)
            if at_ms < until_ms:
                yield _Segment(at_ms, until_ms, "")

    def _runs_of_days(self) -> Iterator[tuple[Millis, Millis, bool]]:
        """Yield the times of consecutive days on all or on none of which the schedule runs."""
        from_ms, end_ms = self._after_ms + 1, self._last_ms + 1
        rule = self._rules.day_rule
        if rule is None:
            yield from_ms, end_ms, True
            return
        day = self._day_of(from_ms)
        while from_ms < end_ms:
            is_allowed, following = rule.allows(day), day + timedelta(1)
            while rule.allows(following) == is_allowed and self._start(following) < end_ms:
                following += timedelta(1)
            until_ms = min(self._start(following), end_ms)
            yield from_ms, until_ms, is_allowed
            from_ms, day = until_ms, following

    def _run_once(self) -> list[Millis]:
        """Return the ends of blackouts at which the latest instant runs, ascending."""
        ends = list[Millis]()
        if not self._rules.blackouts:
            return ends
        for closure in closures_shared(self._rules.blackouts, self._after_ms - 1, self._last_ms + 1):
            start = self._rules.run_once(self._schedule, closure)
            if start is not None and self._after_ms < start.due_ms <= self._last_ms:
                ends.append(start.due_ms)
        return ends

    def _without_last(self, block: Collection[Millis], closure: Closure | None) -> Collection[Millis]:
        """Return the instants without the one that runs at the end of a blackout."""
        if closure is None or not closure.runs_once:
            return block
        start = self._rules.run_once(self._schedule, closure)
        if start is None:
            return block
        return [instant for instant in block if instant != start.logical_ms]

    def _moved_instants(self) -> Iterator[Millis]:
        at_ms = self._after_ms
        while (next_ms := self._rules.next_after_ms(self._schedule, at_ms)) is not None:
            if next_ms > self._last_ms:
                return
            yield next_ms
            at_ms = next_ms

    def _not_moved(self, rule: DayRule) -> Iterator[Exclusion]:
        """Yield the instants that are merged or find no day, and those that blackouts cover."""
        schedule, end_ms = self._schedule, self._last_ms + 1
        day = self._day_of(self._after_ms + 1)
        while self._start(day) < end_ms:
            target = rule.target(day)
            if target is None:
                yield from self._within(CALENDAR, [*raw_of_day(schedule, day)])
            else:
                of_day = starts_on(schedule.conf, schedule.time_zone, rule, target)
                merges = [
                    instant.logical_ms for instant in of_day.merges if self._day_of(instant.logical_ms) == day
                ]
                yield from self._within(CALENDAR, merges)
                if target == day:
                    yield from self._covered_instants(of_day.starts)
            day += timedelta(1)

    def _covered_instants(self, starts: Sequence[Start]) -> Iterator[Exclusion]:
        """Yield those of a day's instants that blackouts cover."""
        for start in starts:
            closure = self._rules.closure_at(start.due_ms)
            if closure is None:
                continue
            once = self._rules.run_once(self._schedule, closure)
            if once is None or once.logical_ms != start.logical_ms:
                yield from self._within(BLACKOUT, [start.due_ms], closure)

    def _within(
        self, reason: str, instants: Collection[Millis], closure: Closure | None = None
    ) -> Iterator[Exclusion]:
        inside = [
            instant
            for instant in instants
            if self._after_ms < instant <= self._last_ms and is_within(self._schedule, instant)
        ]
        if inside:
            yield Exclusion(reason, inside, closure)

    def _day_of(self, at_ms: Millis) -> date:
        return datetime.fromtimestamp(at_ms // SECOND_MS, zone(self._schedule.time_zone)).date()

    def _start(self, day: date) -> Millis:
        return day_start(day, self._schedule.time_zone)
