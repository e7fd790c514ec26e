"""Scan: finds due jobs and turns their instants into fire rows. docs/reference/pipeline.md, section 1.

Next times are computed outside any lock. Then one transaction takes the lock row, keeps the jobs that are
unchanged since they were read, and writes fires, skips and next times in bulk.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis, monotonic_ms
from app.database.engine import call_at_commit, transact
from app.database.faults import REPEAT_MS, reason_of
from app.database.rows import bulk
from app.domain.calendars.effective import JobRules, Start, StartKind
from app.domain.enums import MisfireStrategy, ScheduleType, TriggerStatus, TriggerType
from app.domain.schedules.planning import (
    MAX_COUNTED,
    MAX_COUNTED_UNIX,
    PRE_READ_MS,
    DueFire,
    Plan,
    plan,
    plan_delay,
)
from app.domain.schedules.run_all import RunAll
from app.domain.schedules.schedule import RESTING, Schedule, is_unix_cron, next_after_ms, period_s
from app.errors import InvalidInput
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.endings import STOPPED, record_endings
from app.pipeline.rounds.ends import record_skips
from app.runtime.metrics import FIRES_DUE
from app.store.base import locks
from app.store.calendars import current_book
from app.store.fires import queue as fires
from app.store.fires.missed_runs import MISSED
from app.store.fires.queue import NewFire
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, schedule_of

logger = logging.getLogger(__name__)

#: jobs of one transaction
PAGE = 500
#: pages of one scan; the next scan continues, so that a stop does not have to wait long
MAX_PAGES = 200
#: Of a page that takes longer to plan, only the jobs planned by then are written. The next scan continues, as
#: one schedule may take 50 ms after a long outage.
PLANNING_MAX_MS: Millis = 1_000
#: skip reason of missed instants
MISFIRE = "misfire"
#: skip reason of a job whose schedule could not be evaluated
BROKEN = "invalid"
#: event and id of a job -> when it was logged last
_logged_ms: dict[tuple[str, int], Millis] = {}


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job as it was read, and its plan."""

    job: DueJob
    plan: Plan
    #: reason why the schedule could not be evaluated or written and the job is stopped; else empty
    error: str = ""
    #: what its fires stand for, by due time, where a calendar or a blackout has moved them
    starts: Mapping[Millis, Start] = field(default_factory=dict)


def scan(
    *, node: str, zone: str, now_ms: Millis, monotonic: Callable[[], Millis] = monotonic_ms
) -> list[DueFire]:
    """Write fires for everything due up to PRE_READ_MS from now; return them, for this node's time ring.

    Opens its own transactions, one per page. ``zone`` is the zone of schedules without one of their own.
    """
    due_fires: list[DueFire] = []
    planned_ids: set[int] = set()
    for _ in range(MAX_PAGES):
        due = jobs.find_due(until_ms=now_ms + PRE_READ_MS, limit=PAGE)
        fresh = [job for job in due if job.id not in planned_ids]
        if not fresh:
            break
        planned_ids.update(job.id for job in fresh)
        planned_jobs = _plan_page(fresh, zone, now_ms, monotonic)
        due_fires += _write_page(planned_jobs, node=node, now_ms=now_ms)
        if len(due) < PAGE or len(planned_jobs) < len(fresh):
            break
    return due_fires


def _plan_page(
    page: Sequence[DueJob], zone: str, now_ms: Millis, monotonic: Callable[[], Millis]
) -> list[PlannedJob]:
    """Plan the jobs of a page, the first of them only if all take longer than PLANNING_MAX_MS."""
    planned_jobs: list[PlannedJob] = []
    began_ms = monotonic()
    # A read that fails ends the scan, not the schedule of a job.
    current_book.of_number(page[0].rule_number)
    for job in page:
        planned_jobs.append(_plan(job, zone, now_ms))
        if monotonic() - began_ms >= PLANNING_MAX_MS:
            break
    return planned_jobs


def _plan(job: DueJob, zone: str, now_ms: Millis) -> PlannedJob:
    """Plan one job; one that cannot be planned is stopped and does not end the scan."""
    try:
        schedule = schedule_of(job, zone)
        job_plan = plan_job(job, schedule, now_ms=now_ms)
        return PlannedJob(job, job_plan, starts=_starts(schedule, job_plan))
    except (ValueError, InvalidInput) as exc:  # InvalidCronExpression is a ValueError
        reason = str(exc)
    except Exception as exc:  # An error of an evaluator stops only its own job.
        _log_repeated("schedule not evaluated", job.id)
        reason = repr(exc)
    return PlannedJob(job, Plan((), None, None), reason)


def _starts(schedule: Schedule, job_plan: Plan) -> Mapping[Millis, Start]:
    if not isinstance(schedule.rules, JobRules) or schedule.type is ScheduleType.FIX_DELAY:
        return {}
    starts = (schedule.rules.start_at(schedule, due_ms) for due_ms, _ in job_plan.fires)
    return {start.due_ms: start for start in starts if start.kind is not StartKind.REGULAR}


def _log_repeated(event: str, job_id: int) -> None:
    """Log the current error of a job; a job that cannot be stopped either fails each scan."""
    now_ms, logged_ms = monotonic_ms(), _logged_ms.get((event, job_id))
    if logged_ms is None or now_ms - logged_ms >= REPEAT_MS:
        _logged_ms[event, job_id] = now_ms
        logger.exception("%s job_id=%s", event, job_id)


def plan_job(job: DueJob, schedule: Schedule, *, now_ms: Millis, count_max: int = MAX_COUNTED) -> Plan:
    """Decide what to do with one due job by its schedule.

    Raises ValueError or InvalidInput for an invalid one. For ``count_max`` see ``count_max_of``.
    """
    job_plan = _plan_by(schedule, job, now_ms, count_max)
    if job_plan.next_ms is None and isinstance(schedule.rules, JobRules):
        # A blackout that covers what is left may be ended early: the schedule ends with it, not in it.
        after_ms = max(job_plan.last_ms or 0, job.trigger_next_time - 1)
        return replace(job_plan, next_ms=schedule.rules.covered_until(schedule, after_ms))
    return job_plan


def _plan_by(schedule: Schedule, job: DueJob, now_ms: Millis, count_max: int) -> Plan:
    misfire, due_ms = misfire_of(job), job.trigger_next_time
    next_after = partial(next_after_ms, schedule)
    if isinstance(schedule.rules, JobRules) and schedule.type is ScheduleType.FIX_DELAY:
        if (closure := schedule.rules.closure_at(due_ms)) is not None:
            return Plan((), None, RESTING if closure.until_ms is None else closure.until_ms)
        if 0 < schedule.not_after_ms < due_ms:  # It was put off until then.
            return Plan((), None, None)
    elif schedule.rules is not None:
        # The rules may have changed since it was planned.
        first_ms = next_after(due_ms - 1)
        if first_ms is None or first_ms > now_ms + PRE_READ_MS:
            return Plan((), None, first_ms)
        due_ms = first_ms
    if schedule.type is ScheduleType.FIX_DELAY:
        return plan_delay(
            due_ms,
            misfire,
            now_ms=now_ms,
            following_ms=next_after(now_ms),
            after_run_ms=AFTER_THE_CURRENT_RUN,
        )
    return plan(
        due_ms,
        misfire,
        now_ms=now_ms,
        next_after=next_after,
        period_ms=period_of(schedule),
        count_max=count_max_of(schedule, count_max),
        run_all=run_all_of(job),
    )


def period_of(schedule: Schedule) -> Millis:
    """Return the period by which missed instants are computed: of a fixed rate that runs at all times.

    0 for others, whose instants are enumerated. Raises InvalidCronExpression.
    """
    is_plain = schedule.type is ScheduleType.FIX_RATE and schedule.rules is None
    return period_s(schedule.conf) * SECOND_MS if is_plain else 0


def count_max_of(schedule: Schedule, count_max: int = MAX_COUNTED) -> int:
    """Return how many missed instants of a schedule are counted; ``count_max``: the limit of a cron."""
    if schedule.type is not ScheduleType.CRON:
        return MAX_COUNTED
    return min(count_max, MAX_COUNTED_UNIX if is_unix_cron(schedule.conf) else MAX_COUNTED)


def first_ahead(job: DueJob, instants: Collection[Millis], zone: str) -> Millis | None:
    """Return the earliest read-ahead instant that can be handed back with all later ones, or None.

    By the job's current schedule the instants must lead up to its next time without a gap: a missing one was
    claimed. A job that was stopped because they are its last has no next time. None matches if a Java admin,
    which does not know fires, has stopped the job or changed its schedule.
    """
    running = job.trigger_status == TriggerStatus.RUNNING
    next_ms = job.trigger_next_time if running else None
    schedule, first_ms = schedule_of(job, zone), next_ms
    for instant in sorted(instants, reverse=True):
        try:
            follows = next_after_ms(schedule, instant) == first_ms
        except (ValueError, InvalidInput):
            follows = False
        if not follows:
            break
        first_ms = instant
    return first_ms if first_ms != next_ms else None


def last_decided(job: DueJob, open_ms: Millis | None, zone: str, *, now_ms: Millis) -> Millis:
    """Return the latest instant with a run or a skip; ``open_ms``: that of ``first_ahead``."""
    if open_ms is None:
        return job.last_fire_ms
    schedule, decided_ms = schedule_of(job, zone), now_ms
    if schedule.type is ScheduleType.FIX_RATE:  # It counts from any time.
        return min(job.last_fire_ms, max(now_ms, open_ms - period_s(schedule.conf) * SECOND_MS))
    # Instants between now and the first withdrawn one were claimed by a node whose clock is slightly ahead.
    while (instant := next_after_ms(schedule, decided_ms)) is not None and instant < open_ms:
        decided_ms = instant
    return min(job.last_fire_ms, decided_ms)


def misfire_of(job: DueJob) -> MisfireStrategy:
    """Return a job's misfire strategy; an unknown name means DO_NOTHING, as RUN_ALL of a fixed delay does."""
    if job.misfire_strategy == MisfireStrategy.FIRE_ONCE_NOW:
        return MisfireStrategy.FIRE_ONCE_NOW
    is_delay = job.schedule_type == ScheduleType.FIX_DELAY
    runs_all = job.misfire_strategy == MisfireStrategy.RUN_ALL and not is_delay
    return MisfireStrategy.RUN_ALL if runs_all else MisfireStrategy.DO_NOTHING


def run_all_of(job: DueJob) -> RunAll:
    """Return which missed instants of a job run, by RUN_ALL."""
    return RunAll(max(job.misfire_max, 1), job.misfire_max_age_s * SECOND_MS)


def _write_page(page: Sequence[PlannedJob], *, node: str, now_ms: Millis) -> list[DueFire]:
    """Write a page; a job whose data the database refuses is stopped and does not end the scan."""
    try:
        return transact(partial(_write, page=page, node=node, now_ms=now_ms))
    except DataError as exc:
        if len(page) == 1 and page[0].error:  # The job cannot be stopped either.
            _log_repeated("job not planned", page[0].job.id)
            return []
        if len(page) == 1:
            parts = [[PlannedJob(page[0].job, Plan((), None, None), reason_of(exc))]]
        else:
            middle = len(page) // 2
            parts = [[*page[:middle]], [*page[middle:]]]
    return [fire for part in parts for fire in _write_page(part, node=node, now_ms=now_ms)]


def _write(session: Session, page: Sequence[PlannedJob], *, node: str, now_ms: Millis) -> list[DueFire]:
    locks.take_schedule_lock(session)
    current = jobs.lock_planned(session, [planned_job.job.id for planned_job in page])
    valid = [planned_job for planned_job in page if current.get(planned_job.job.id) == planned_job.job]
    due_fires = fires.insert_fires(
        session, [fire for planned_job in valid for fire in _fires(planned_job, node)]
    )
    for planned_job in valid:
        if planned_job.plan.fires:
            group, count = str(planned_job.job.job_group), len(planned_job.plan.fires)
            call_at_commit(session, partial(FIRES_DUE.add, group, count=count))
    record_skips(
        session,
        [row for planned_job in valid for row in _skips(planned_job, now_ms)],
        {planned_job.job.id: planned_job.job for planned_job in valid},
        now_ms=now_ms,
    )
    bulk.update_many(session, Job, [_advance(planned_job) for planned_job in valid])
    endings = {
        planned_job.job.id: planned_job.error for planned_job in valid if planned_job.plan.next_ms is None
    }
    record_endings(session, endings, now_ms=now_ms, node=node)
    return due_fires


def _fires(planned_job: PlannedJob, node: str) -> list[NewFire]:
    prefixes: Mapping[TriggerType, str] = {TriggerType.CRON: "cron", TriggerType.MISFIRE: "misfire"}
    job_id = planned_job.job.id
    fire_rows = [
        NewFire(f"{prefixes[kind]}:{job_id}:{instant}", job_id, instant, kind, owner=node)
        if (start := planned_job.starts.get(instant)) is None
        else _moved_fire(job_id, start, kind, node)
        for instant, kind in planned_job.plan.fires
    ]
    if misfire_of(planned_job.job) is not MisfireStrategy.RUN_ALL:
        return fire_rows
    return [
        fire._replace(waits_for=MISSED) if fire.trigger_type is TriggerType.MISFIRE else fire
        for fire in fire_rows
    ]


def _moved_fire(job_id: int, start: Start, kind: TriggerType, node: str) -> NewFire:
    """Return the fire of an instant that a calendar has moved, or that a blackout has covered."""
    if start.kind is StartKind.RUN_ONCE:
        kind, key = TriggerType.MISFIRE, f"misfire:{job_id}:{start.logical_ms}"
    else:
        key = f"{'cron' if kind is TriggerType.CRON else 'misfire'}:{job_id}:{start.due_ms}"
    return NewFire(key, job_id, start.due_ms, kind, owner=node, logical_ms=start.logical_ms)


def _skips(planned_job: PlannedJob, now_ms: Millis) -> list[bulk.Row]:
    skipped_range = planned_job.plan.skipped_range
    row = {"job_id": planned_job.job.id, "recorded_ms": now_ms}
    if planned_job.error:
        due_ms = planned_job.job.trigger_next_time
        return [row | {"from_ms": due_ms, "to_ms": due_ms, "skipped": 1, "reason": BROKEN}]
    if skipped_range is None:
        return []
    return [
        row
        | {
            "from_ms": skipped_range.from_ms,
            "to_ms": skipped_range.to_ms,
            "skipped": skipped_range.count,
            "reason": MISFIRE,
        }
    ]


def _advance(planned_job: PlannedJob) -> bulk.Row:
    """Return the job's new times; a schedule without a next time stops its job, as in XXL-JOB."""
    job, job_plan = planned_job.job, planned_job.plan
    last_ms = job_plan.last_ms
    row = {"id": job.id, "last_fire_ms": max(job.last_fire_ms, last_ms or 0)}
    if job_plan.next_ms is None:
        return row | STOPPED
    return row | {
        "trigger_status": TriggerStatus.RUNNING.value,
        "trigger_last_time": last_ms or job.trigger_last_time,
        "trigger_next_time": job_plan.next_ms,
    }
