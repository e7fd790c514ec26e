"""How many runs a schedule starts in each quarter of an hour to come, without stepping from one to the next.

A job of every second has 600,000 starts a week. So a cron expression is taken apart: starts of each quarter of an hour (minutes times
seconds), hours, and days; only the days are searched for, once for all expressions that have the same ones. Quarters, because all
zones differ by whole ones, and so every reader's hours are made of them. Where clocks change the rules are those of
``cron.expression`` and ``cron.unix``.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.cron import unix
from app.domain.cron.days import mask_of
from app.domain.cron.expression import CronExpression, split_fields
from app.domain.cron.fields import HOUR, MINUTE, SECOND, Field, parse_field
from app.domain.enums import ScheduleType
from app.domain.schedule import Schedule, next_after_ms, zone

QUARTER_MS: Final[Millis] = 15 * MINUTE_MS
#: crons whose starts within a window are kept
SCHEDULES_KEPT: Final = 16_384
_HOUR_MS: Final[Millis] = 60 * MINUTE_MS
#: quarters of an hour, and of a day
_QUARTERS: Final = range(4)
_A_DAY: Final = 96
#: around a change of the clocks Unix crons are stepped through, because croniter moves what falls into it
_NEAR_CHANGE: Final = 3 * len(_QUARTERS)
#: the minutes of the first quarter of an hour, as bits
_A_QUARTER: Final = (1 << 15) - 1
#: a day and an hour in which no clock changes, to read the fields of Unix crons from
_PLAIN_MS: Final[Millis] = DAY_MS


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
    """When a job of a fixed period starts runs: first within the first period of a window, and so on to its end."""

    period_ms: Millis
    #: from the begin of the window
    first_ms: Millis


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
    #: quarters near a change of the clocks
    near_change: tuple[int, ...]
    #: local quarter -> quarter; -1 for those outside, left out or repeated; for Unix crons also those near a change
    places: tuple[int, ...]
    unix_places: tuple[int, ...]


def next_days(now_ms: Millis, zone_name: str, *, days: int) -> Window:
    """Return the window from the next full hour of a zone's clock to the end of the last of so many days."""
    tz, at_ms = zone(zone_name), (now_ms // QUARTER_MS + 1) * QUARTER_MS
    while datetime.fromtimestamp(at_ms // SECOND_MS, tz).minute:
        at_ms += QUARTER_MS
    end = datetime.combine(datetime.fromtimestamp(at_ms // SECOND_MS, tz).date() + timedelta(days=days), datetime.min.time(), tz)
    return Window(at_ms, (int(end.timestamp()) * SECOND_MS - at_ms) // QUARTER_MS)


def hours_of(window: Window, zone_name: str) -> list[HourOfDay]:
    """Return the hours of a window by the clock of a zone, ascending."""
    times = _local_times(zone_name, window)
    found: dict[int, list[int]] = {}
    for quarter, local in enumerate(times.local):
        found.setdefault(local // len(_QUARTERS), []).append(quarter)
    return [HourOfDay(times.first + timedelta(days=at // 24), at % 24, tuple(quarters)) for at, quarters in found.items()]


@lru_cache(maxsize=SCHEDULES_KEPT)
def cron_starts(conf: str, zone_name: str, window: Window) -> CronStarts:
    """Return when a cron expression starts runs within a window; raise InvalidCronExpression."""
    fields, times = split_fields(conf), _local_times(zone_name, window)
    if len(fields) == unix.FIELD_COUNT:
        single = _stepped_near_changes(conf, zone_name, window) if times.near_change else ()
        days = _unix_days(tuple(fields[2:]), times.first, times.days)
        return CronStarts(zone_name, True, days, _unix_hours(fields[1]), _unix_minutes(fields[0]), single)
    if len(fields) < unix.FIELD_COUNT:
        CronExpression.parse(conf)  # refuses it
    days = _days(tuple(fields[3:]), times.first, times.days)
    a_minute, minutes = _mask(SECOND, fields[0]).bit_count(), _minutes(fields[1])
    return CronStarts(zone_name, False, days, _mask(HOUR, fields[2]), tuple(a_minute * count for count in minutes))


def bounded(starts: CronStarts, schedule: Schedule, window: Window) -> CronStarts:
    """Leave out what lies before or behind the bounds of a cron schedule."""
    from_ms = max(window.from_ms, schedule.not_before_ms)
    until_ms = min(window.until_ms, schedule.not_after_ms + 1) if schedule.not_after_ms else window.until_ms
    if (from_ms, until_ms) == (window.from_ms, window.until_ms):
        return starts
    single = dict(enumerate(total_starts([(starts, 1)], (), window)))
    for quarter in single:
        begin_ms = window.from_ms + quarter * QUARTER_MS
        inside_ms = max(from_ms, begin_ms), min(until_ms, begin_ms + QUARTER_MS)
        if inside_ms[0] >= inside_ms[1]:
            single[quarter] = 0
        elif inside_ms != (begin_ms, begin_ms + QUARTER_MS) and single[quarter]:
            single[quarter] = sum(_stepped(schedule, *inside_ms, window).values())
    return CronStarts(single=tuple(item for item in single.items() if item[1]))


def repeated_starts(
    conf: str, next_ms: Millis, window: Window, *, not_before_ms: Millis = 0, not_after_ms: Millis = 0
) -> CronStarts | RepeatedStarts:
    """Return when a job of a fixed period starts runs whose next start is at ``next_ms``; raise InvalidCronExpression."""
    period_ms = _period_ms(conf)
    until_ms = min(window.until_ms, not_after_ms + 1) if not_after_ms else window.until_ms
    behind_ms = max(0, max(window.from_ms, not_before_ms) - next_ms)
    first_ms = next_ms + -(-behind_ms // period_ms) * period_ms
    if until_ms == window.until_ms and first_ms - window.from_ms < period_ms:
        return RepeatedStarts(period_ms, first_ms - window.from_ms)
    return single_starts(range(first_ms, until_ms, period_ms), window)


def single_starts(instants: range, window: Window) -> CronStarts:
    """Return those of some instants that lie in a window, in a step an instant or a step a quarter, whichever is less."""
    if len(instants) < window.quarters:
        inside = (at_ms for at_ms in instants if window.from_ms <= at_ms < window.until_ms)
        return CronStarts(single=tuple(Counter((at_ms - window.from_ms) // QUARTER_MS for at_ms in inside).items()))
    before = [bisect_left(instants, window.from_ms + edge * QUARTER_MS) for edge in range(window.quarters + 1)]
    return CronStarts(single=tuple((quarter, count - at) for quarter, (at, count) in enumerate(pairwise(before)) if count > at))


def counts_in(many: Iterable[CronStarts | RepeatedStarts], quarters: Collection[int], window: Window) -> list[int]:
    """Count the starts of each of many schedules in some quarters of a window."""
    spans = [(quarter * QUARTER_MS, (quarter + 1) * QUARTER_MS) for quarter in quarters]
    clocks: dict[tuple[str, bool], list[tuple[int, int, int]]] = {}
    counts = []
    for starts in many:
        if isinstance(starts, RepeatedStarts):
            begin_ms, period_ms = starts.first_ms, starts.period_ms
            counts.append(sum(len(range(begin_ms, until, period_ms)) - len(range(begin_ms, at, period_ms)) for at, until in spans))
            continue
        count = sum(number for quarter, number in starts.single if quarter in quarters) if starts.single else 0
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


def total_starts(counted: Iterable[tuple[CronStarts, int]], repeated: Iterable[RepeatedStarts], window: Window) -> list[int]:
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
    for (zone_name, is_unix, days, hours), sums in alike.items():
        times = _local_times(zone_name, window)
        places = times.unix_places if is_unix else times.places
        for hour in (day * _A_DAY + hour * 4 for day in _bits(days) for hour in _bits(hours)):
            for number in _QUARTERS:
                totals[places[hour + number]] += sums[number]  # -1: the last one
    _add_repeated(totals, repeated, window)
    return totals[:-1]


def _add_repeated(totals: list[int], repeated: Iterable[RepeatedStarts], window: Window) -> None:
    """Add jobs of fixed periods: those of one period together, step by step or by quarter, whichever is less."""
    begins: dict[Millis, list[Millis]] = {}
    for starts in repeated:
        begins.setdefault(starts.period_ms, []).append(starts.first_ms)
    length_ms = window.quarters * QUARTER_MS
    for period_ms, firsts in begins.items():
        if len(firsts) * length_ms < period_ms * window.quarters:
            for at_ms in (at_ms for first_ms in firsts for at_ms in range(first_ms, length_ms, period_ms)):
                totals[at_ms // QUARTER_MS] += 1
            continue
        firsts.sort()
        before = 0
        for quarter in range(window.quarters):
            whole, rest_ms = divmod((quarter + 1) * QUARTER_MS, period_ms)
            now = whole * len(firsts) + bisect_left(firsts, rest_ms)
            totals[quarter] += now - before
            before = now


@lru_cache(maxsize=1024)
def _stepped_near_changes(conf: str, zone_name: str, window: Window) -> tuple[tuple[int, int], ...]:
    """Return what a Unix cron starts near changes of the clocks."""
    near, found = _local_times(zone_name, window).near_change, dict[int, int]()
    schedule = Schedule(ScheduleType.CRON, conf, zone_name)
    for first in (quarter for quarter in near if quarter - 1 not in near):
        last = next(quarter for quarter in near if quarter >= first and quarter + 1 not in near)
        found |= _stepped(schedule, window.from_ms + first * QUARTER_MS, window.from_ms + (last + 1) * QUARTER_MS, window)
    return tuple(found.items())


def _stepped(schedule: Schedule, from_ms: Millis, until_ms: Millis, window: Window) -> dict[int, int]:
    """Count by stepping from start to start: quarter -> starts."""
    found: dict[int, int] = {}
    at_ms = next_after_ms(schedule, from_ms - 1)
    while at_ms is not None and at_ms < until_ms:
        quarter = (at_ms - window.from_ms) // QUARTER_MS
        found[quarter] = found.get(quarter, 0) + 1
        at_ms = next_after_ms(schedule, at_ms)
    return found


@lru_cache(maxsize=256)
def _local_times(zone_name: str, window: Window) -> _LocalTimes:
    """Read the clock of a zone at each quarter, and so much before and behind the window as a change there matters in it."""
    tz, around = zone(zone_name), range(-_NEAR_CHANGE, window.quarters + _NEAR_CHANGE)
    begins = [datetime.fromtimestamp((window.from_ms + quarter * QUARTER_MS) // SECOND_MS, tz) for quarter in around]
    changes = [number for number, (at, after) in enumerate(pairwise(begins), around[0] + 1) if at.utcoffset() != after.utcoffset()]
    near = {near for at in changes for near in range(at - _NEAR_CHANGE, at + _NEAR_CHANGE) if 0 <= near < window.quarters}
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
    return _LocalTimes(first, days, tuple(local), tuple(sorted(near)), tuple(places), tuple(unix_places))


@lru_cache(maxsize=4096)
def _mask(field: Field, text: str) -> int:
    return mask_of(field, parse_field(field, text))


@lru_cache(maxsize=4096)
def _minutes(text: str) -> tuple[int, ...]:
    """Return how many minutes of each quarter of an hour are allowed."""
    mask = _mask(MINUTE, text)
    return tuple((mask >> 15 * quarter & _A_QUARTER).bit_count() for quarter in _QUARTERS)


@lru_cache(maxsize=1024)
def _days(fields: tuple[str, ...], first: date, days: int) -> int:
    """Return which of some days the last three or four fields of a cron expression allow."""
    cron, found = CronExpression.parse(f"0 0 0 {' '.join(fields)}"), 0
    at = cron.next_from(datetime.combine(first, datetime.min.time()))
    while at is not None and (number := (at.date() - first).days) < days:
        found |= 1 << number
        at = cron.next_after(at)
    return found


@lru_cache(maxsize=4096)
def _period_ms(conf: str) -> Millis:
    """Return the period of a fixed rate or delay."""
    return next_after_ms(Schedule(ScheduleType.FIX_RATE, conf, "UTC"), 0) or 0


@lru_cache(maxsize=1024)
def _unix_minutes(text: str) -> tuple[int, ...]:
    minutes = [at // MINUTE_MS for at in _unix_fires([text, "*", "*", "*", "*"], _HOUR_MS)]
    return tuple(sum(minute // 15 == quarter for minute in minutes) for quarter in _QUARTERS)


@lru_cache(maxsize=1024)
def _unix_hours(text: str) -> int:
    return sum(1 << at // _HOUR_MS for at in _unix_fires(["0", text, "*", "*", "*"], DAY_MS))


@lru_cache(maxsize=1024)
def _unix_days(fields: tuple[str, ...], first: date, days: int) -> int:
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


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
