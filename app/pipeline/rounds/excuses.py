"""Excused predecessors: a calendar or blackouts have excluded all their instants of a round."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.calendars.effective import day_start
from app.domain.calendars.excuses import is_excused
from app.domain.enums import TriggerStatus
from app.domain.rounds.evaluation import RoundArrival
from app.domain.rounds.kinds import ArrivalOutcome, RoundKind
from app.domain.rounds.round_keys import in_chain
from app.domain.rounds.runs_after import RunsAfter, parse_runs_after
from app.errors import InvalidInput
from app.models.base import zone_name
from app.store.calendars import current_book
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, schedule_of
from app.store.rounds.following import FollowerRow
from app.store.rounds.rounds import RoundRow

#: reason of such an arrival
CALENDAR = "calendar"


def looks_ahead() -> bool:
    """Whether there are calendars or blackouts, so that the monitor has to look at rounds that are opened."""
    return current_book.current().number > 0


def find_excused(
    session: Session,
    open_rounds: Sequence[RoundRow],
    followers: Mapping[int, FollowerRow],
    arrivals: Mapping[int, Sequence[RoundArrival]],
    *,
    now_ms: Millis,
) -> dict[int, list[RoundArrival]]:
    """Return round -> arrivals of the predecessors that have nothing to run in it."""
    missing: dict[int, tuple[RunsAfter, set[int]]] = {}
    for row in open_rounds:
        rule = parse_runs_after(followers[row.job_id].runs_after) if row.job_id in followers else None
        if rule is None or in_chain(row.chain) or rule.round is RoundKind.SINCE_LAST:
            continue
        left = set(rule.jobs) - {arrival.predecessor_id for arrival in arrivals.get(row.id, ())}
        if left:
            missing[row.id] = rule, left
    if not missing or not looks_ahead():
        return {}
    predecessors = jobs.find_planned(session, {job_id for _, left in missing.values() for job_id in left})
    new_arrivals: dict[int, list[RoundArrival]] = {}
    for row in open_rounds:
        if row.id not in missing:
            continue
        rule, left = missing[row.id]
        from_ms, until_ms = _times(row, rule, followers[row.job_id].time_zone or zone_name())
        new_arrivals[row.id] = [
            RoundArrival(job_id, 0, 1, ArrivalOutcome.EXCUSED, now_ms, None, CALENDAR)
            for job_id in sorted(left)
            if (job := predecessors.get(job_id)) is not None and _is_excused(job, from_ms, until_ms)
        ]
    return new_arrivals


def _times(row: RoundRow, rule: RunsAfter, zone: str) -> tuple[Millis, Millis]:
    """Return the times whose instants belong to a round: one instant, or a day of its job."""
    if rule.round is RoundKind.LOGICAL_TIME:
        return row.logical_ms, row.logical_ms + 1
    day = date.fromisoformat(row.round_key.partition(":")[2])
    return day_start(day, zone), day_start(day + timedelta(1), zone)


def _is_excused(job: DueJob, from_ms: Millis, until_ms: Millis) -> bool:
    if job.trigger_status != TriggerStatus.RUNNING:
        return False
    try:
        return is_excused(schedule_of(job, zone_name()), from_ms, until_ms)
    except (ValueError, InvalidInput):
        return False
