"""Instants of a schedule in a past range, by its present rules: those it runs, and those it leaves out."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from app.clock import DAY_MS, HOUR_MS, Millis
from app.domain.backfills.instants import Exclusion, Standing
from app.domain.calendars.day_rule import SHIFT_DAYS_MAX
from app.domain.calendars.effective import JobRules, is_within
from app.domain.calendars.preview import Fate, PreviewInstant, instants
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule

#: schedules whose past instants are known without their runs
WITH_INSTANTS: Final = frozenset({ScheduleType.CRON, ScheduleType.FIX_RATE, ScheduleType.AT})
#: an instant may be moved by so much
_SHIFT_MS: Final[Millis] = (SHIFT_DAYS_MAX + 1) * DAY_MS
#: a preview reaches for two years
_PART_MS: Final[Millis] = 365 * DAY_MS
#: six fields find the hour that clocks repeat only from before it
_REPEATED_MS: Final[Millis] = 3 * HOUR_MS
_STANDINGS: Final = {
    Fate.SKIPPED: Standing.CALENDAR,
    Fate.MERGED: Standing.CALENDAR,
    Fate.BLACKOUT: Standing.BLACKOUT,
}


class ScheduleTimes(NamedTuple):
    """Instants of a range."""

    logical_times: list[Millis]
    exclusions: Mapping[Millis, Exclusion]
    #: whether the range has more than were asked for
    is_cut: bool = False


def list_times(
    schedule: Schedule, from_ms: Millis, to_ms: Millis, *, now_ms: Millis, most: int
) -> ScheduleTimes:
    """Return the instants of the expression in [from, to), ``most`` at most.

    One that is moved counts where the expression has it, and not before the time it is moved to. Raises
    ValueError for a schedule that is invalid.
    """
    if schedule.type not in WITH_INSTANTS:
        return ScheduleTimes([], {})
    rules = schedule.rules if isinstance(schedule.rules, JobRules) else JobRules()
    # A fixed rate that has never been on has no phase yet.
    rules = replace(rules, anchor_ms=rules.anchor_ms or max(from_ms, schedule.not_before_ms))
    times, exclusions = list[Millis](), dict[Millis, Exclusion]()
    for raw_ms, instant in _fates(replace(schedule, rules=rules), rules, from_ms, to_ms):
        standing = _STANDINGS.get(instant.fate) if instant.due_ms is None else None
        if instant.due_ms is not None and instant.due_ms > now_ms:
            continue
        if len(times) + len(exclusions) == most:
            return ScheduleTimes(times, exclusions, is_cut=True)
        if standing is not None:
            exclusions[raw_ms] = Exclusion(standing, instant.reason or instant.day_name)
        else:
            times.append(raw_ms)
    return ScheduleTimes(times, exclusions)


def _fates(
    schedule: Schedule, rules: JobRules, from_ms: Millis, to_ms: Millis
) -> Iterator[tuple[Millis, PreviewInstant]]:
    """Yield the instants of the expression in [from, to) and in the window, with what becomes of each."""
    shift_ms = _SHIFT_MS if rules.day_rule is not None and rules.day_rule.moves else 0
    # Beyond the window there may be any number.
    from_ms = max(from_ms, schedule.not_before_ms - shift_ms)
    to_ms = min(to_ms, schedule.not_after_ms + shift_ms + 1) if schedule.not_after_ms else to_ms
    for part_ms in range(from_ms, to_ms, _PART_MS):
        yield from _fates_of_part(schedule, rules, part_ms, min(part_ms + _PART_MS, to_ms), shift_ms)


def _fates_of_part(
    schedule: Schedule, rules: JobRules, from_ms: Millis, to_ms: Millis, shift_ms: Millis
) -> Iterator[tuple[Millis, PreviewInstant]]:
    """Yield those of a part that is short enough for one preview."""
    begin_ms = from_ms - 1 - _REPEATED_MS
    raw_after, previews = rules.raw_after(schedule, begin_ms), instants(schedule, begin_ms - shift_ms)
    coming, last = next(previews, None), None
    raw_ms = raw_after(begin_ms)
    while raw_ms is not None and raw_ms < to_ms:
        while coming is not None and coming.raw_ms <= raw_ms:
            coming, last = next(previews, None), coming
        instant = _fate_of(schedule, raw_ms, last)
        if instant is not None and raw_ms >= from_ms:
            yield raw_ms, instant
        raw_ms = raw_after(raw_ms)


def _fate_of(schedule: Schedule, raw_ms: Millis, last: PreviewInstant | None) -> PreviewInstant | None:
    """Return what becomes of an instant: only the first of those that share it is in a preview.

    None: it lies outside the window.
    """
    if last is None or last.raw_ms == raw_ms:
        return last
    return last if last.has_more and is_within(schedule, raw_ms) else None
