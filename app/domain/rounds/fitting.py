"""Fit of predecessors: whether one has an instant that belongs to a round. Pure, for previews.

docs/runs-after.md. What actually arrives decides; this only compares schedules.
"""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import NamedTuple

from app.clock import DAY_MS, LATEST_MS, SECOND_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.rounds.kinds import RoundKind
from app.domain.schedules.schedule import Schedule, next_after_ms, period_s, zone

#: rounds in a preview
ROUNDS_SHOWN = 3


class Fit(StrEnum):
    """Whether a predecessor has an instant that belongs to a round."""

    FITS = "fits"
    MISSING = "missing"
    #: it depends on when other jobs run, or on how long its own runs take
    UNKNOWN = "unknown"
    #: its schedule is switched off
    OFF = "off"
    #: neither a schedule nor jobs after which it runs
    SILENT = "silent"


class Predecessor(NamedTuple):
    """What the schedule of a predecessor says; the schedule is valid."""

    schedule: Schedule
    is_on: bool
    #: whether it runs after other jobs, or as a child of one
    is_follower: bool = False
    #: next start of a fixed rate; 0: not known
    next_ms: Millis = 0

    @property
    def has_instants(self) -> bool:
        """Whether its instants can be computed."""
        is_known = self.schedule.type in (ScheduleType.CRON, ScheduleType.AT)
        return self.is_on and (is_known or (self.schedule.type is ScheduleType.FIX_RATE and self.next_ms > 0))


def fit_of(predecessor: Predecessor, kind: RoundKind, at_ms: Millis, zone_name: str) -> Fit:
    """Return whether a predecessor has an instant in the round of ``at_ms``.

    ``zone_name``: zone of the job that follows; ``kind``: of its rounds.
    """
    if predecessor.schedule.type is ScheduleType.NONE:
        return Fit.UNKNOWN if predecessor.is_follower else Fit.SILENT
    if not predecessor.is_on:
        return Fit.OFF
    if not predecessor.has_instants:
        return Fit.UNKNOWN
    from_ms, until_ms = _bounds(kind, at_ms, zone_name)
    next_ms = _next(predecessor, from_ms - 1)
    return Fit.FITS if next_ms is not None and next_ms < until_ms else Fit.MISSING


def next_rounds(
    own: Predecessor, predecessors: Sequence[Predecessor], kind: RoundKind, *, now_ms: Millis
) -> list[Millis]:
    """Return the instants of the next rounds: of the job's ``own`` schedule, else those of its predecessors.

    Nothing for rounds since the last one of a job without a schedule: they have no instants.
    """
    if own.schedule.type is not ScheduleType.NONE:
        return _rounds([own], None, own.schedule.time_zone, now_ms)
    if kind is RoundKind.SINCE_LAST:
        return []
    with_instants = [predecessor for predecessor in predecessors if predecessor.has_instants]
    return _rounds(with_instants, kind, own.schedule.time_zone, now_ms)


def _rounds(
    jobs: Sequence[Predecessor], kind: RoundKind | None, zone_name: str, now_ms: Millis
) -> list[Millis]:
    rounds, after_ms = list[Millis](), now_ms
    while len(rounds) < ROUNDS_SHOWN:
        instants = [at_ms for job in jobs if (at_ms := _next(job, after_ms)) is not None]
        if not instants:
            break
        rounds.append(min(instants))
        is_day = kind is RoundKind.DAY
        after_ms = _bounds(RoundKind.DAY, rounds[-1], zone_name)[1] - 1 if is_day else rounds[-1]
    return rounds


def _next(job: Predecessor, after_ms: Millis) -> Millis | None:
    """Return the first instant of a job after another one; of a fixed rate by its next start, if known."""
    schedule = job.schedule
    if schedule.type is ScheduleType.FIX_DELAY:
        return None
    if schedule.type is not ScheduleType.FIX_RATE or not job.next_ms:
        return next_after_ms(schedule, after_ms)
    period_ms = period_s(schedule.conf) * SECOND_MS
    at_ms = job.next_ms + ((after_ms - job.next_ms) // period_ms + 1) * period_ms
    is_over = 0 < schedule.not_after_ms < at_ms
    return None if is_over else at_ms


def _bounds(kind: RoundKind, at_ms: Millis, zone_name: str) -> tuple[Millis, Millis]:
    """Return from when, inclusive, until when, exclusive, instants belong to the round of ``at_ms``."""
    match kind:
        case RoundKind.LOGICAL_TIME:
            return at_ms, at_ms + 1
        case RoundKind.SINCE_LAST:
            return at_ms - DAY_MS, LATEST_MS
    local = zone(zone_name)
    day = datetime.fromtimestamp(at_ms / SECOND_MS, local).date()
    starts = (datetime.combine(midnight, time.min, local) for midnight in (day, day + timedelta(days=1)))
    from_ms, until_ms = (int(start.timestamp()) * SECOND_MS for start in starts)
    return from_ms, until_ms
