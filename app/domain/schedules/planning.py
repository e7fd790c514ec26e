"""Planning: the instants of a due job that a scan fires or skips, and the next time.

Source: docs/reference/pipeline.md, section 1, after XXL-JOB 2.4.1 JobScheduleHelper.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.clock import Millis
from app.domain.enums import MisfireStrategy, TriggerType
from app.domain.schedules.run_all import NextAfter, RunAll

#: a scan plans this far ahead; an instant older than this is a misfire
PRE_READ_MS: Millis = 5_000
#: most fires of a job per scan; the next scan writes the rest
MAX_FIRES_A_PASS = 20
#: Skipped instants of a schedule are counted up to this number.
MAX_COUNTED = 10_000
#: The limit for crons of five fields, which are slower to search.
MAX_COUNTED_UNIX = 3_000
#: The limit for any cron once the count after a restore has taken too long.
MAX_COUNTED_WHEN_LATE = 501


def is_capped(count: int) -> bool:
    """Whether there may be more skipped instants than were counted."""
    return count in (MAX_COUNTED_WHEN_LATE, MAX_COUNTED_UNIX, MAX_COUNTED)


PlannedFire = tuple[Millis, TriggerType]


class DueFire(NamedTuple):
    """A PENDING fire as the time ring holds it."""

    id: int
    job_id: int
    due_time: Millis


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """Consecutive instants that will not be fired, both ends inclusive; ``count`` may stop at a limit."""

    from_ms: Millis
    to_ms: Millis
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan for a job; ``next_ms`` None: the schedule has ended."""

    fires: tuple[PlannedFire, ...]
    skipped_range: SkippedRange | None
    next_ms: Millis | None

    @property
    def last_ms(self) -> Millis | None:
        """The latest instant this plan turns into a fire or a skip."""
        instants = [instant for instant, _ in self.fires]
        if self.skipped_range is not None:
            instants.append(self.skipped_range.to_ms)
        return max(instants, default=None)


def plan(
    due_ms: Millis,
    misfire: MisfireStrategy,
    *,
    now_ms: Millis,
    next_after: NextAfter,
    period_ms: Millis = 0,
    count_max: int = MAX_COUNTED,
    run_all: RunAll | None = None,
) -> Plan:
    """Plan a job whose next time is ``due_ms``.

    ``period_ms`` is the period of a fixed rate, whose missed instants are computed and not enumerated;
    otherwise 0. ``count_max``: skipped instants are counted up to this number. ``run_all``: which missed
    instants run, by RUN_ALL.
    """
    if due_ms >= now_ms - PRE_READ_MS:
        return _plan_due(due_ms, now_ms=now_ms, next_after=next_after)
    if misfire is MisfireStrategy.RUN_ALL:
        limits = run_all or RunAll()
        return _plan_all(due_ms, limits, now_ms, next_after, period_ms=period_ms, count_max=count_max)
    # One of the missed instants may be fired. The others are skipped.
    misfires = missed_until(now_ms, due_ms, next_after, period_ms=period_ms, count_max=count_max + 1)
    ahead = _plan_due(next_after(misfires.to_ms), now_ms=now_ms, next_after=next_after)
    if misfire is not MisfireStrategy.FIRE_ONCE_NOW:
        return Plan(ahead.fires, replace(misfires, count=min(misfires.count, count_max)), ahead.next_ms)
    once = (misfires.to_ms, TriggerType.MISFIRE)
    skips = _without_last(misfires, next_after, period_ms, whole=misfires.count <= count_max)
    return Plan((once, *ahead.fires), skips, ahead.next_ms)


def plan_delay(
    due_ms: Millis,
    misfire: MisfireStrategy,
    *,
    now_ms: Millis,
    following_ms: Millis | None,
    after_run_ms: Millis,
) -> Plan:
    """Plan a fixed delay: one fire, and no next time (``after_run_ms``) until its result has arrived.

    ``following_ms``: one delay from now; None: outside the job's window.
    """
    if due_ms >= now_ms - PRE_READ_MS:
        return Plan(((due_ms, TriggerType.CRON),), None, after_run_ms)
    if misfire is MisfireStrategy.FIRE_ONCE_NOW:
        return Plan(((due_ms, TriggerType.MISFIRE),), None, after_run_ms)
    return Plan((), SkippedRange(due_ms, due_ms, 1), following_ms)


def group_consecutive(instants: Iterable[Millis], next_after: NextAfter) -> list[SkippedRange]:
    """Group instants into runs of consecutive ones, between which the schedule has no other instant."""
    runs: list[SkippedRange] = []
    for instant in sorted(set(instants)):
        if runs and next_after(runs[-1].to_ms) == instant:
            runs[-1] = SkippedRange(runs[-1].from_ms, instant, runs[-1].count + 1)
        else:
            runs.append(SkippedRange(instant, instant, 1))
    return runs


def missed_until(
    now_ms: Millis, due_ms: Millis, next_after: NextAfter, *, period_ms: Millis, count_max: int
) -> SkippedRange:
    """Return all instants from the due one up to now; for ``period_ms`` and ``count_max`` see ``plan``."""
    if period_ms > 0:
        periods = (now_ms - due_ms) // period_ms
        if periods and next_after(due_ms + (periods - 1) * period_ms) is None:
            # The schedule ended before now.
            periods = bisect_left(
                range(periods), True, key=lambda number: next_after(due_ms + number * period_ms) is None
            )
        return SkippedRange(due_ms, due_ms + periods * period_ms, min(periods + 1, count_max))
    last, count = due_ms, 1
    while (instant := next_after(last)) is not None and instant <= now_ms:
        if count == count_max:
            return SkippedRange(due_ms, latest_until(now_ms, next_after), count)
        last, count = instant, count + 1
    return SkippedRange(due_ms, last, count)


def _plan_all(
    due_ms: Millis,
    limits: RunAll,
    now_ms: Millis,
    next_after: NextAfter,
    *,
    period_ms: Millis,
    count_max: int,
) -> Plan:
    """Plan a job whose missed instants run, MAX_FIRES_A_PASS at once; the others are skipped."""
    misfires = missed_until(now_ms, due_ms, next_after, period_ms=period_ms, count_max=limits.most + 1)
    first_ms = limits.first(
        due_ms,
        misfires.to_ms,
        now_ms=now_ms,
        next_after=next_after,
        period_ms=period_ms,
        are_few=misfires.count <= limits.most,
    )
    until_ms = misfires.to_ms if first_ms is None else first_ms - 1
    skips = (
        missed_until(until_ms, due_ms, next_after, period_ms=period_ms, count_max=count_max)
        if due_ms <= until_ms
        else None
    )
    fires, instant = list[PlannedFire](), first_ms
    while instant is not None and instant <= misfires.to_ms and len(fires) < MAX_FIRES_A_PASS:
        fires.append((instant, TriggerType.MISFIRE))
        instant = next_after(instant)
    if fires and instant is not None and instant <= misfires.to_ms:
        return Plan(tuple(fires), skips, instant)
    most = MAX_FIRES_A_PASS - len(fires)
    ahead = _plan_due(next_after(misfires.to_ms), now_ms=now_ms, next_after=next_after, most=most)
    return Plan((*fires, *ahead.fires), skips, ahead.next_ms)


def _plan_due(
    instant: Millis | None, *, now_ms: Millis, next_after: NextAfter, most: int = MAX_FIRES_A_PASS
) -> Plan:
    fires: list[PlannedFire] = []
    while instant is not None and instant <= now_ms + PRE_READ_MS and len(fires) < most:
        fires.append((instant, TriggerType.CRON))
        instant = next_after(instant)
    return Plan(tuple(fires), None, instant)


def latest_until(until_ms: Millis, next_after: NextAfter) -> Millis:
    """Return the latest instant up to a time, which must exist.

    Searches windows of doubling length, then skips ahead by steps of half the length.
    """
    step_ms = 1_000
    while (latest := next_after(until_ms - step_ms)) is None or latest > until_ms:
        step_ms *= 2
    while step_ms:
        step_ms //= 2
        while (later := next_after(latest + step_ms)) is not None and later <= until_ms:
            latest = later
    return latest


def _without_last(
    misfires: SkippedRange, next_after: NextAfter, period_ms: Millis, *, whole: bool
) -> SkippedRange | None:
    """Return the missed instants without the latest, which is fired; ``whole``: the count is exact."""
    if misfires.from_ms == misfires.to_ms:
        return None
    if period_ms > 0:
        return SkippedRange(misfires.from_ms, misfires.to_ms - period_ms, misfires.count - 1)
    if not whole:
        return SkippedRange(
            misfires.from_ms, latest_until(misfires.to_ms - 1, next_after), misfires.count - 1
        )
    last = misfires.from_ms
    while (instant := next_after(last)) is not None and instant < misfires.to_ms:
        last = instant
    return SkippedRange(misfires.from_ms, last, misfires.count - 1)
