"""Late fires: scheduled fires found unclaimed long after their instant.

The node that wrote them was down, or the database was unavailable. The misfire strategy of their job applies,
as for instants that no scan has read.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.enums import FireState, MisfireStrategy, NodeKind, ScheduleType, TriggerStatus, TriggerType
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.pipeline.delays import set_delayed
from app.pipeline.rounds.ends import record_skips
from app.pipeline.scan import misfire_of, run_all_of
from app.pipeline.skips import skip_rows
from app.store.calendars.paused_fires import PAUSED
from app.store.fires import logs, scheduled_fires
from app.store.fires.missed_runs import MISSED
from app.store.fires.scheduled_fires import ScheduledFire
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob
from app.store.nodes import nodes

logger = logging.getLogger(__name__)

#: a fire found this long after its instant is late. A scan allows 5 s; a fire is already a row, so it is
#: still sent after a restart of the workers or a short outage of the database
LATE_MS: Millis = 60_000


def settle_late(due: Sequence[DueFire], *, node: str, zone: str, now_ms: Millis) -> frozenset[int]:
    """Settle late fires by the misfire strategies of their jobs; return the ids of those not to claim now.

    DO_NOTHING skips them. FIRE_ONCE_NOW fires the latest one as a misfire and skips the others; if a later
    instant of the job is due, it skips all and that instant runs instead. RUN_ALL has the newest that are
    young enough wait for one another, and skips the others. ``due`` must not contain fires that wait in this
    process, because these were read in time. Fires of other live nodes, manual runs, retries and child runs
    are left alone. Opens its own transactions.
    """
    late = [fire.id for fire in due if fire.due_time <= now_ms - LATE_MS]
    if not late:
        return frozenset()
    with read_scope() as session:
        other_nodes = {
            live.name for live in nodes.find_live(session, now_ms=now_ms) if live.kind == NodeKind.WORKERS
        } - {node}
        conditions = (
            Fire.id.in_(late),
            Fire.trigger_type == TriggerType.CRON,
            # One that has waited for its round or a blackout, or that a user has started, is not late.
            Fire.round_id.is_(None),
            Fire.waits_for != PAUSED,
            Fire.admitted_ms == 0,
            Fire.owner.not_in(other_nodes),
        )
        late_fires = scheduled_fires.find_unclaimed(session, *conditions)
    if not late_fires:
        return frozenset()
    settlement = transact(lambda session: _settle(session, late_fires, zone=zone, now_ms=now_ms))
    logger.warning(
        "late fires settled skipped=%s fired_once=%s held=%s",
        len(settlement.skipped_ids),
        settlement.fired_once,
        len(settlement.held_ids),
    )
    return settlement.skipped_ids | settlement.held_ids


class _Settlement(NamedTuple):
    """What became of late fires."""

    skipped_ids: frozenset[int]
    #: that wait for one another
    held_ids: frozenset[int]
    #: jobs that fire one instant instead
    fired_once: int


def _settle(session: Session, late: Sequence[ScheduledFire], *, zone: str, now_ms: Millis) -> _Settlement:
    job_by_id = jobs.lock_planned(session, {fire.job_id for fire in late})
    fires_by_job: defaultdict[int, list[ScheduledFire]] = defaultdict(list)
    is_late = (Fire.id.in_([fire.id for fire in late]), Fire.state == FireState.PENDING)
    for fire in scheduled_fires.lock_unclaimed(session, *is_late):
        fires_by_job[fire.job_id].append(fire)
    skipped_fires: list[ScheduledFire] = []
    misfires: list[bulk.Row] = []
    held_fires: list[ScheduledFire] = []
    fired_once = 0
    skips: list[bulk.Row] = []
    for job_id, job_fires in fires_by_job.items():
        if (job := job_by_id.get(job_id)) is None:  # It was deleted meanwhile: a claim drops its fires.
            continue
        if misfire_of(job) is MisfireStrategy.RUN_ALL:
            to_run = _instants_to_run(job, job_fires, now_ms)
            held_fires += [fire for fire in job_fires if fire.due_time in to_run]
        else:
            fired_ms = _fired_once(job, job_fires, now_ms)
            to_run = {fired_ms} if fired_ms is not None else set()
            misfires += [_as_misfire(fire) for fire in job_fires if fire.due_time in to_run]
            fired_once += len(to_run)
        job_skips = [fire for fire in job_fires if fire.due_time not in to_run]
        skipped_fires += job_skips
        skips += skip_rows(
            job, [fire.due_time for fire in job_skips], zone=zone, reason="misfire", now_ms=now_ms
        )
    bulk.update_many(session, Fire, misfires)
    _hold(session, held_fires)
    record_skips(session, skips, job_by_id, now_ms=now_ms)
    scheduled_fires.remove(session, skipped_fires)
    set_delayed(session, _delayed_ids(job_by_id, skipped_fires), now_ms=now_ms)
    return _Settlement(_ids(skipped_fires), _ids(held_fires), fired_once)


def _ids(late_fires: Sequence[ScheduledFire]) -> frozenset[int]:
    return frozenset(fire.id for fire in late_fires)


def _fired_once(job: DueJob, late: Sequence[ScheduledFire], now_ms: Millis) -> Millis | None:
    """Return the instant that is fired instead of all late ones; None: all are skipped."""
    latest_ms = max(fire.due_time for fire in late)
    is_unscanned = job.trigger_status == TriggerStatus.RUNNING and 0 < job.trigger_next_time <= now_ms
    if misfire_of(job) is not MisfireStrategy.FIRE_ONCE_NOW or job.last_fire_ms > latest_ms or is_unscanned:
        return None
    return latest_ms


def _instants_to_run(job: DueJob, late: Sequence[ScheduledFire], now_ms: Millis) -> set[Millis]:
    """Return the instants that run, of a job that runs all."""
    limits = run_all_of(job)
    newest = sorted({fire.due_time for fire in late})[-limits.most :]
    return {due_ms for due_ms in newest if due_ms >= now_ms - limits.max_age_ms}


def _hold(session: Session, held_fires: Sequence[ScheduledFire]) -> None:
    """Have fires wait for one another, without the log rows prepared for them, which would look like runs."""
    waiting = {"state": FireState.GATED.value, "waits_for": MISSED, "log_id": None}
    bulk.update_many(session, Fire, [_as_misfire(fire) | waiting for fire in held_fires])
    logs.delete_logs(session, [fire.log_id for fire in held_fires if fire.log_id])


def _as_misfire(fire: ScheduledFire) -> bulk.Row:
    key = f"misfire:{fire.fire_key.removeprefix('cron:')}"
    return {"id": fire.id, "fire_key": key, "trigger_type": TriggerType.MISFIRE.value}


def _delayed_ids(job_by_id: dict[int, DueJob], skipped_fires: Collection[ScheduledFire]) -> list[int]:
    """Return the FIX_DELAY jobs that wait for the result of a run that was skipped."""
    skipped_jobs = {fire.job_id for fire in skipped_fires}
    return [
        job_id
        for job_id, job in job_by_id.items()
        if job_id in skipped_jobs and job.schedule_type == ScheduleType.FIX_DELAY
    ]
