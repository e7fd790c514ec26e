"""How many runs a schedule starts in each quarter of an hour to come, without stepping from one to the next.

A job of every second has 600,000 starts a week. So a cron expression is taken apart: starts of each quarter of an hour (minutes times
seconds), hours, and days; only the days are searched for, once for all expressions that have the same ones. Quarters, because all
zones differ by whole ones, and so every reader's hours are made of them. Where clocks change the rules are those of
``cron.expression`` and ``cron.unix``.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.domain.cron import unix
from app.domain.cron.expression import CronExpression, split_fields
from app.domain.cron.field_starts import (
    days_allowed,
    field_mask,
    minutes_a_quarter,
    unix_days,
    unix_hours,
    unix_minutes,
)
from app.domain.cron.fields import HOUR, SECOND
from app.domain.enums import ScheduleType
from app.domain.schedule import Schedule, next_after_ms, zone

QUARTER_MS: Final[Millis] = 15 * MINUTE_MS
#: crons whose starts within a window are kept
SCHEDULES_KEPT: Final = 16_384
#: quarters of an hour, and of a day
_QUARTERS: Final = range(4)
_A_DAY: Final = 96
#: around a change of the clocks Unix crons are stepped through, because croniter moves what falls into it
_NEAR_CHANGE: Final = 3 * len(_QUARTERS)


class Window(NamedTuple):
    """Quarters of an hour in a row; the first begins at a multiple of QUARTER_MS."""

    from_ms: Millis
    quarters: int

    @property
    def until_ms(self) -> Millis:
        """Return its end, which is not included."""
        return self.from_ms + self.quarters * QUARTER_MS


class CronStarts(NamedTuple):
    """When a cron expression starts runs within a window, by local time: on each of the days, in each of the hours."""

    zone: str = ""
    is_unix: bool = False
    #: bit n: the n-th local day of the window
    days: int = 0
    #: bit n: the hour n
    hours: int = 0
    #: starts in each quarter of such an hour
    each: tuple[int, ...] = ()
    #: more of them: quarter of the window, starts
    single: tuple[tuple[int, int], ...] = ()


class RepeatedStarts(NamedTuple):
    """When a job of a fixed period starts runs within a window."""

    period_ms: Millis
    #: from the begin of the window
    first_ms: Millis
    #: likewise; not included
    until_ms: Millis


class HourOfDay(NamedTuple):
    """One hour as a clock shows it, and the quarters of a window it is made of: eight where it comes twice."""

    day: date
    hour: int
    quarters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _LocalTimes:
    """A window by the clock of a zone; local quarters are counted from midnight of the first day."""

    first: date
    days: int
    #: the local quarter of each quarter of the window
    local: tuple[int, ...]
    #: the quarters that begin with a change of the clocks, and those so near the window that it matters in it
    changes: tuple[int, ...]
    #: local quarter -> quarter; -1 for those outside, left out or repeated; for Unix crons also those near a change
    places: tuple[int, ...]
    unix_places: tuple[int, ...]


def next_days(now_ms: Millis, zone_name: str, *, days: int) -> Window:
    """Return the window from the next full hour of a zone's clock to the end of the last of so many days."""
    tz, at_ms = zone(zone_name), (now_ms // QUARTER_MS + 1) * QUARTER_MS
    while datetime.fromtimestamp(at_ms // SECOND_MS, tz).minute:
        at_ms += QUARTER_MS
    end = datetime.combine(
        datetime.fromtimestamp(at_ms // SECOND_MS, tz).date() + timedelta(days=days), datetime.min.time(), tz
    )
    return Window(at_ms, (int(end.timestamp()) * SECOND_MS - at_ms) // QUARTER_MS)


def hours_of(window: Window, zone_name: str) -> list[HourOfDay]:
    """Return the hours of a window by the clock of a zone, ascending."""
    times = _local_times(zone_name, window)
    found: dict[int, list[int]] = {}
    for quarter, local in enumerate(times.local):
        found.setdefault(local // len(_QUARTERS), []).append(quarter)
    return [
        HourOfDay(times.first + timedelta(days=at // 24), at % 24, tuple(quarters))
        for at, quarters in found.items()
    ]


@lru_cache(maxsize=SCHEDULES_KEPT)
def cron_starts(conf: str, zone_name: str, window: Window) -> CronStarts:
    """Return when a cron expression starts runs within a window; raise InvalidCronExpression."""
    fields, times = split_fields(conf), _local_times(zone_name, window)
    if len(fields) == unix.FIELD_COUNT:
        single = _near_changes(conf, zone_name, times.changes, window) if times.changes else ()
        days = unix_days(tuple(fields[2:]), times.first, times.days)
        return CronStarts(zone_name, True, days, unix_hours(fields[1]), unix_minutes(fields[0]), single)
    if len(fields) < unix.FIELD_COUNT:
        CronExpression.parse(conf)  # refuses it
    days = days_allowed(tuple(fields[3:]), times.first, times.days)
    a_minute, minutes = field_mask(SECOND, fields[0]).bit_count(), minutes_a_quarter(fields[1])
    return CronStarts(
        zone_name, False, days, field_mask(HOUR, fields[2]), tuple(a_minute * count for count in minutes)
    )


@lru_cache(maxsize=SCHEDULES_KEPT)
def bounded_starts(
    conf: str, zone_name: str, not_before_ms: Millis, not_after_ms: Millis, window: Window
) -> CronStarts:
    """Return when a cron expression starts runs within a window and its bounds; days that a bound cuts are told by quarter."""
    starts, times = cron_starts(conf, zone_name, window), _local_times(zone_name, window)
    from_ms, until_ms = _clipped(not_before_ms, not_after_ms, window)
    whole = range(-(-(from_ms - window.from_ms) // QUARTER_MS), (until_ms - window.from_ms) // QUARTER_MS)
    cut = sum(
        1 << day for day in {at // _A_DAY for quarter, at in enumerate(times.local) if quarter not in whole}
    )
    single = list[tuple[int, int]]()
    for quarter, count in enumerate(total_starts([(starts._replace(days=starts.days & cut), 1)], (), window)):
        if count and quarter in whole:
            single.append(_in_quarter(quarter, count))
        elif count and quarter in (whole.start - 1, whole.stop):
            begin_ms = window.from_ms + quarter * QUARTER_MS
            stepped = _stepped(conf, zone_name, max(from_ms, begin_ms), min(until_ms, begin_ms + QUARTER_MS))
            single += [_in_quarter(quarter, inside) for inside in stepped.values()]
    return starts._replace(days=starts.days & ~cut, single=tuple(single))


def repeated_starts(
    conf: str, next_ms: Millis, window: Window, *, not_before_ms: Millis = 0, not_after_ms: Millis = 0
) -> CronStarts | RepeatedStarts:
    """Return when a job of a fixed period starts runs whose next start is at ``next_ms``; raise InvalidCronExpression."""
    period_ms, (from_ms, until_ms) = _period_ms(conf), _clipped(not_before_ms, not_after_ms, window)
    first_ms = next_ms + -(-max(0, from_ms - next_ms) // period_ms) * period_ms
    if first_ms >= until_ms:
        return CronStarts()
    return RepeatedStarts(period_ms, first_ms - window.from_ms, until_ms - window.from_ms)


@lru_cache(maxsize=SCHEDULES_KEPT)
def single_start(
    conf: str, zone_name: str, not_before_ms: Millis, not_after_ms: Millis, window: Window
) -> CronStarts:
    """Return the start of an AT schedule, if it lies in a window and its bounds; raise InvalidCronExpression."""
    at_ms = next_after_ms(
        Schedule(ScheduleType.AT, conf, zone_name, not_before_ms, not_after_ms), window.from_ms - 1
    )
    if at_ms is None or at_ms >= window.until_ms:
        return CronStarts()
    return CronStarts(single=(_in_quarter((at_ms - window.from_ms) // QUARTER_MS, 1),))


def counts_in(
    many: Iterable[CronStarts | RepeatedStarts], quarters: Collection[int], window: Window
) -> list[int]:
    """Count the starts of each of many schedules in some quarters of a window."""
    spans = list[tuple[Millis, Millis]]()
    for quarter in sorted(quarters):
        joins = spans and spans[-1][1] == quarter * QUARTER_MS
        spans.append((spans.pop()[0] if joins else quarter * QUARTER_MS, (quarter + 1) * QUARTER_MS))
    clocks: dict[tuple[str, bool], list[tuple[int, int, int]]] = {}
    counts = []
    for starts in many:
        if isinstance(starts, RepeatedStarts):
            counts.append(0)
            period_ms, first_ms, end_ms = starts
            for at_ms, until_ms in spans:
                counts[-1] += len(range(first_ms, min(until_ms, end_ms), period_ms)) - len(
                    range(first_ms, min(at_ms, end_ms), period_ms)
                )
            continue
        count = (
            sum(number for quarter, number in starts.single if quarter in quarters) if starts.single else 0
        )
        if starts.days:
            clock = clocks.get(starts[:2])
            if clock is None:
                clock = clocks[starts[:2]] = _clock_at(starts, quarters, window)
            for day, hour, number in clock:
                if starts.days >> day & 1 and starts.hours >> hour & 1:
                    count += starts.each[number]
        counts.append(count)
    return counts


def _clock_at(starts: CronStarts, quarters: Collection[int], window: Window) -> list[tuple[int, int, int]]:
    """Return day, hour and number in the hour of those quarters in which such a cron can start by its local time."""
    times = _local_times(starts.zone, window)
    places = times.unix_places if starts.is_unix else times.places
    local = [times.local[quarter] for quarter in quarters if places[times.local[quarter]] == quarter]
    return [(at // _A_DAY, at % _A_DAY // 4, at % 4) for at in local]


def total_starts(
    counted: Iterable[tuple[CronStarts, int]], repeated: Iterable[RepeatedStarts], window: Window
) -> list[int]:
    """Return the starts in each quarter of a window; ``counted`` says how many jobs have each of the crons."""
    totals = [0] * (window.quarters + 1)  # the last takes what lies outside
    alike: dict[tuple[str, bool, int, int], list[int]] = {}
    for starts, jobs in counted:
        if starts.days:
            sums = alike.setdefault(starts[:4], [0, 0, 0, 0])
            for number, count in enumerate(starts.each):
                sums[number] += jobs * count
        for quarter, count in starts.single:
            totals[quarter] += jobs * count
    # zone by zone, so that the clock of each is looked up once even where there are more than are kept
    for (zone_name, is_unix, days, hours), sums in sorted(alike.items()):
        times = _local_times(zone_name, window)
        places = times.unix_places if is_unix else times.places
        for hour in (day * _A_DAY + hour * 4 for day in _bits(days) for hour in _bits(hours)):
            for number in _QUARTERS:
                totals[places[hour + number]] += sums[number]  # -1: the last one
    _add_repeated(totals, repeated, window)
    return totals[:-1]


def _add_repeated(totals: list[int], repeated: Iterable[RepeatedStarts], window: Window) -> None:
    """Add jobs of fixed periods: those of one period together, step by step or by quarter, whichever is less."""
    alike: dict[Millis, list[RepeatedStarts]] = {}
    for starts in repeated:
        alike.setdefault(starts.period_ms, []).append(starts)
    length_ms = window.quarters * QUARTER_MS
    for period_ms, jobs in alike.items():
        if len(jobs) * length_ms < period_ms * window.quarters:
            for at_ms in (at_ms for job in jobs for at_ms in range(job.first_ms, job.until_ms, period_ms)):
                totals[at_ms // QUARTER_MS] += 1
            continue
        # one that ends is one without an end less one that begins where it would go on
        _add_endless(totals, 1, period_ms, [job.first_ms for job in jobs])
        ends = (job.first_ms + len(range(job.first_ms, job.until_ms, period_ms)) * period_ms for job in jobs)
        _add_endless(totals, -1, period_ms, [end_ms for end_ms in ends if end_ms < length_ms])


def _add_endless(totals: list[int], sign: int, period_ms: Millis, firsts: list[Millis]) -> None:
    """Add starts, or take them away, that are repeated from each of some instants to the end of the window."""
    firsts.sort()
    begun, before, periods_missed, rests = 0, 0, 0, list[Millis]()
    for quarter in range(len(totals) - 1 if firsts else 0):
        whole, rest_ms = divmod((quarter + 1) * QUARTER_MS, period_ms)
        while begun < len(firsts) and firsts[begun] < (quarter + 1) * QUARTER_MS:
            missed, first_rest_ms = divmod(firsts[begun], period_ms)
            insort(rests, first_rest_ms)
            begun, periods_missed = begun + 1, periods_missed + missed
        now = whole * begun + bisect_left(rests, rest_ms) - periods_missed
        totals[quarter] += sign * (now - before)
        before = now


def _clipped(not_before_ms: Millis, not_after_ms: Millis, window: Window) -> tuple[Millis, Millis]:
    """Return begin and end, which is not included, of what lies between the bounds of a schedule in a window."""
    return max(window.from_ms, not_before_ms), min(
        window.until_ms, not_after_ms + 1
    ) if not_after_ms > 0 else window.until_ms


def _near_changes(
    conf: str, zone_name: str, changes: Iterable[int], window: Window
) -> tuple[tuple[int, int], ...]:
    """Return what a Unix cron starts near changes of the clocks."""
    first, found = window.from_ms // QUARTER_MS, dict[int, int]()
    for change in changes:
        found |= _stepped_near_change(conf, zone_name, window.from_ms + change * QUARTER_MS)
    return tuple(
        (quarter - first, count) for quarter, count in found.items() if 0 <= quarter - first < window.quarters
    )


@lru_cache(maxsize=4096)
def _stepped_near_change(conf: str, zone_name: str, change_ms: Millis) -> dict[int, int]:
    """Count the same of one change. It is slow, so it is kept for all windows the change matters in."""
    near_ms = _NEAR_CHANGE * QUARTER_MS
    return _stepped(conf, zone_name, change_ms - near_ms, change_ms + near_ms)


def _stepped(conf: str, zone_name: str, from_ms: Millis, until_ms: Millis) -> dict[int, int]:
    """Count the starts of a cron by stepping from one to the next: quarter since 1970 -> starts."""
    schedule, found = Schedule(ScheduleType.CRON, conf, zone_name), dict[int, int]()
    at_ms = next_after_ms(schedule, from_ms - 1)
    while at_ms is not None and at_ms < until_ms:
        found[at_ms // QUARTER_MS] = found.get(at_ms // QUARTER_MS, 0) + 1
        at_ms = next_after_ms(schedule, at_ms)
    return found


@lru_cache(maxsize=4096)
def _in_quarter(quarter: int, starts: int) -> tuple[int, int]:
    """Return both; of thousands of schedules that are kept the equal ones are the same."""
    return quarter, starts


@lru_cache(maxsize=1024)
def _local_times(zone_name: str, window: Window) -> _LocalTimes:
    """Read the clock of a zone at each quarter, and so much before and behind the window as a change there matters in it."""
    tz, around = zone(zone_name), range(-_NEAR_CHANGE, window.quarters + _NEAR_CHANGE)
    begins = [
        datetime.fromtimestamp((window.from_ms + quarter * QUARTER_MS) // SECOND_MS, tz) for quarter in around
    ]
    changes = [
        number
        for number, (at, after) in enumerate(pairwise(begins), around[0] + 1)
        if at.utcoffset() != after.utcoffset()
    ]
    near = {
        near
        for at in changes
        for near in range(at - _NEAR_CHANGE, at + _NEAR_CHANGE)
        if 0 <= near < window.quarters
    }
    begins = begins[_NEAR_CHANGE:-_NEAR_CHANGE]
    first = begins[0].date()
    local = [((at.date() - first).days * 24 + at.hour) * 4 + at.minute // 15 for at in begins]
    days = max(local) // _A_DAY + 1
    places, unix_places = [-1] * (days * _A_DAY), [-1] * (days * _A_DAY)
    for quarter, (at, place) in enumerate(zip(begins, local, strict=True)):
        if at.replace(fold=1).utcoffset() == at.utcoffset():
            places[place] = quarter
        if quarter not in near:
            unix_places[place] = quarter
    return _LocalTimes(first, days, tuple(local), tuple(changes), tuple(places), tuple(unix_places))


@lru_cache(maxsize=4096)
def _period_ms(conf: str) -> Millis:
    """Return the period of a fixed rate or delay."""
    return next_after_ms(Schedule(ScheduleType.FIX_RATE, conf, "UTC"), 0) or 0


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
