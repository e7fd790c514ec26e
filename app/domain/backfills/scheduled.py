"""Instants of a schedule in a past range, by its present rules: those it runs, and those it leaves out."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from app.clock import DAY_MS, Millis
from app.domain.backfills.instants import Excluded, Standing
from app.domain.calendars.day_rule import SHIFT_DAYS_MAX
from app.domain.calendars.effective import JobRules, is_within
from app.domain.calendars.preview import Fate, PreviewInstant, instants
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule

#: schedules whose past instants are known without their runs
WITH_INSTANTS: Final = frozenset({ScheduleType.CRON, ScheduleType.FIX_RATE, ScheduleType.AT})
#: an instant may be moved by so much
_SHIFT_MS: Final[Millis] = (SHIFT_DAYS_MAX + 1) * DAY_MS
_STANDINGS: Final = {
    Fate.SKIPPED: Standing.CALENDAR,
    Fate.MERGED: Standing.CALENDAR,
    Fate.BLACKOUT: Standing.BLACKOUT,
}


class Scheduled(NamedTuple):
    """Instants of a range."""

    logical_times: list[Millis]
    excluded: Mapping[Millis, Excluded]
    #: whether the range has more than were asked for
    is_cut: bool = False


def scheduled(schedule: Schedule, from_ms: Millis, to_ms: Millis, *, now_ms: Millis, most: int) -> Scheduled:
    """Return the instants of the expression in [from, to), ``most`` at most.

    One that is moved counts where the expression has it, and not before the time it is moved to. Raises
    ValueError for a schedule that is invalid.
    """
    if schedule.type not in WITH_INSTANTS:
        return Scheduled([], {})
    rules = schedule.rules if isinstance(schedule.rules, JobRules) else JobRules()
    raw_after = rules.raw_after(schedule, from_ms - 1)
    moves = rules.day_rule is not None and rules.day_rule.moves
    previews = instants(schedule, from_ms - 1 - (_SHIFT_MS if moves else 0))
    times, excluded = list[Millis](), dict[Millis, Excluded]()
    coming, last = next(previews, None), None
    raw_ms = raw_after(from_ms - 1)
    while raw_ms is not None and raw_ms < to_ms:
        while coming is not None and coming.raw_ms <= raw_ms:
            coming, last = next(previews, None), coming
        each = _fate_of(schedule, raw_ms, last)
        if each is None:
            pass
        elif len(times) + len(excluded) == most:
            return Scheduled(times, excluded, is_cut=True)
        elif (standing := _STANDINGS.get(each.fate)) is not None and each.due_ms is None:
            excluded[raw_ms] = Excluded(standing, each.reason or each.day_name)
        elif each.due_ms is None or each.due_ms <= now_ms:
            times.append(raw_ms)
        raw_ms = raw_after(raw_ms)
    return Scheduled(times, excluded)


def _fate_of(schedule: Schedule, raw_ms: Millis, last: PreviewInstant | None) -> PreviewInstant | None:
    """Return what becomes of an instant: only the first of those that share it is in a preview.

    None: it lies outside the window.
    """
    if last is None or last.raw_ms == raw_ms:
        return last
    return last if last.has_more and is_within(schedule, raw_ms) else None
