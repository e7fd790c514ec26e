"""Expected instants: when the schedule of a job should have fired, computed from its history alone.

Nothing here reads what the scan has planned: neither next times nor fires, so that a comparison of both
proves something. Source: docs/reference/completeness.md.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from app.clock import SECOND_MS, Millis
from app.domain.calendars.effective import JobRules
from app.domain.completeness.rule_instants import Exclusion, RuledInstants
from app.domain.completeness.spans import Span, in_order
from app.domain.enums import ScheduleType
from app.domain.schedules.cron import unix
from app.domain.schedules.cron.expression import CronExpression, split_fields
from app.domain.schedules.schedule import Schedule, is_unix_cron, next_after_ms, period_s, zone
from app.errors import InvalidInput

_HOUR_S: Final = 3_600
_MINUTE_S: Final = 60


class Interval(NamedTuple):
    """Instants from ``from_ms`` to before ``until_ms``."""

    from_ms: Millis
    until_ms: Millis


def expected_instants(spans: Sequence[Span], interval: Interval) -> Iterator[Millis]:
    """Yield the instants at which a job with this history was expected to fire, ascending.

    ``spans`` are of one job. A fixed delay has none: when it fires depends on its runs.
    """
    for span in in_order(spans):
        after_ms, last_ms = _bounds(span, interval)
        if not span.is_on or after_ms >= last_ms:
            continue
        try:
            yield from _instants(span, after_ms, last_ms)
        except (ValueError, InvalidInput):  # The scan has stopped a job whose schedule is invalid.
            continue


def count_expected(spans: Sequence[Span], interval: Interval) -> int:
    """Return how many instants ``expected_instants`` yields; whole hours of a cron are not enumerated."""
    count = 0
    for span in in_order(spans):
        after_ms, last_ms = _bounds(span, interval)
        if not span.is_on or after_ms >= last_ms:
            continue
        try:
            count += _count(span, after_ms, last_ms)
        except (ValueError, InvalidInput):
            continue
    return count


def find_exclusions(spans: Sequence[Span], interval: Interval) -> Iterator[Exclusion]:
    """Yield the instants that the calendar of a job or blackouts exclude, by reason."""
    for span in in_order(spans):
        after_ms, last_ms = _bounds(span, interval)
        if not span.is_on or after_ms >= last_ms:
            continue
        try:
            if (instants := _rule_instants(span, after_ms, last_ms)) is not None:
                yield from instants.exclusions()
        except (ValueError, InvalidInput):
            continue


def count_excluded(spans: Sequence[Span], interval: Interval) -> Counter[str]:
    """Return how many instants the calendar of a job or blackouts exclude, by reason."""
    count = Counter[str]()
    for part in find_exclusions(spans, interval):
        count[part.reason] += len(part.instants)
    return count


def _bounds(span: Span, interval: Interval) -> tuple[Millis, Millis]:
    """Return after which instant, and up to which, a span lies in an interval."""
    last_ms = interval.until_ms - 1
    return max(span.from_ms, interval.from_ms - 1), (
        last_ms if span.until_ms is None else min(last_ms, span.until_ms)
    )


def _instants(span: Span, after_ms: Millis, last_ms: Millis) -> Iterator[Millis]:
    instants = _rule_instants(span, after_ms, last_ms)
    return chain.from_iterable(_raw_blocks(span, after_ms, last_ms)) if instants is None else iter(instants)


def _count(span: Span, after_ms: Millis, last_ms: Millis) -> int:
    instants = _rule_instants(span, after_ms, last_ms)
    return sum(map(len, _raw_blocks(span, after_ms, last_ms))) if instants is None else instants.count()


def _rule_instants(span: Span, after_ms: Millis, last_ms: Millis) -> RuledInstants | None:
    """Return the instants of a span with a calendar or blackouts; None: it has none."""
    rules = span.schedule.rules
    if not isinstance(rules, JobRules) or span.schedule.type is ScheduleType.FIX_DELAY:
        return None
    return RuledInstants(span.schedule, rules, partial(_raw_blocks, span), after_ms, last_ms)


def _raw_blocks(span: Span, after_ms: Millis, last_ms: Millis) -> Iterator[Collection[Millis]]:
    """Yield the instants of the expression alone, ascending, in blocks."""
    schedule = replace(span.schedule, rules=None)
    match schedule.type:
        case ScheduleType.FIX_RATE:
            yield _of_rate(span, after_ms, last_ms)
        case ScheduleType.CRON:
            yield from _blocks(schedule, after_ms, last_ms)
        case ScheduleType.AT:
            instant = next_after_ms(schedule, after_ms)
            if instant is not None and instant <= last_ms:
                yield [instant]


def _of_rate(span: Span, after_ms: Millis, last_ms: Millis) -> range:
    """Return the instants of a fixed rate, each a whole number of periods after the first."""
    period_ms, schedule = period_s(span.schedule.conf) * SECOND_MS, span.schedule
    if not span.anchor_ms:
        return range(0)
    first_ms = max(after_ms + 1, schedule.not_before_ms)
    periods = max(0, -((span.anchor_ms - first_ms) // period_ms))
    last_ms = min(last_ms, schedule.not_after_ms) if schedule.not_after_ms else last_ms
    return range(span.anchor_ms + periods * period_ms, last_ms + 1, period_ms)


class _Hour(Collection[Millis]):
    """Fires of a cron in an hour of local time without a change of clocks: masks of minutes and seconds."""

    def __init__(self, begin_s: int, minutes: int, seconds: int, within: range) -> None:
        self._begin_s, self._minutes, self._seconds, self._within = begin_s, minutes, seconds, within

    def __iter__(self) -> Iterator[Millis]:
        seconds = _bits(self._seconds)
        for minute in _bits(self._minutes):
            for second in seconds:
                offset = minute * _MINUTE_S + second
                if offset in self._within:
                    yield (self._begin_s + offset) * SECOND_MS

    def __contains__(self, instant: object) -> bool:
        return any(instant == other for other in self)

    def __len__(self) -> int:
        if len(self._within) == _HOUR_S:
            return self._minutes.bit_count() * self._seconds.bit_count()
        return sum(1 for _ in self)


def _blocks(schedule: Schedule, after_ms: Millis, last_ms: Millis) -> Iterator[Collection[Millis]]:
    """Yield the fires of a cron by hours; those around a change of clocks one by one, by the scan's rule.

    The rule of the scan finds the first fire of each hour. The rest of the hour follows from its masks.
    """
    minutes, seconds, hours = _masks(schedule.conf)
    tz, after_ms = zone(schedule.time_zone), max(after_ms, schedule.not_before_ms - 1)
    while (instant := next_after_ms(schedule, after_ms)) is not None and instant <= last_ms:
        local = datetime.fromtimestamp(instant // SECOND_MS, tz)
        begin_s = instant // SECOND_MS - local.minute * _MINUTE_S - local.second
        is_of_masks = hours >> local.hour & 1 and minutes >> local.minute & 1 and seconds >> local.second & 1
        if not is_of_masks or not _is_steady(begin_s, tz):
            yield [instant]
            after_ms = instant
            continue
        first_s = max(begin_s, instant // SECOND_MS) - begin_s
        last_s = min(_last_of(schedule, last_ms) // SECOND_MS - begin_s, _HOUR_S - 1)
        yield _Hour(begin_s, minutes, seconds, range(_whole(begin_s, first_s, after_ms), last_s + 1))
        after_ms = (begin_s + _HOUR_S - 1) * SECOND_MS


def _whole(begin_s: int, first_s: int, after_ms: Millis) -> int:
    """Return the first second of an hour to look at: 0 if the search began before the hour."""
    return 0 if after_ms < begin_s * SECOND_MS else first_s


def _last_of(schedule: Schedule, last_ms: Millis) -> Millis:
    return min(last_ms, schedule.not_after_ms) if schedule.not_after_ms else last_ms


@lru_cache(maxsize=4_096)
def _masks(conf: str) -> tuple[int, int, int]:
    """Return the masks of minutes, seconds and hours of a cron."""
    if is_unix_cron(conf):
        minutes, hours = unix.minutes_and_hours(split_fields(conf))
        return minutes, 1, hours
    cron = CronExpression.parse(conf)
    return cron.minutes, cron.seconds, cron.hours


@lru_cache(maxsize=4_096)
def _is_steady(begin_s: int, tz: ZoneInfo) -> bool:
    """Whether no clock is changed in an hour, nor in the ones before and after it."""
    seconds = range(begin_s - _HOUR_S, begin_s + 2 * _HOUR_S + 1, _HOUR_S // 2)
    return len({datetime.fromtimestamp(second, tz).utcoffset() for second in seconds}) == 1


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
