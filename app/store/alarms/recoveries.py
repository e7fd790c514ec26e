"""Recoveries: jobs that have succeeded since their last alarm, and the alarm rows that announce it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, and_, delete, exists, func, or_, select, true, update
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.engine import affected
from app.database.sql.planner_hints import unindexed_on_mysql
from app.domain.enums import AlarmReason, AlarmState, HandleCode
from app.domain.runs.sharding import parse_shard
from app.models.alarm import Alarm
from app.models.base import lower_bound
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.store.alarms.alarms import insert_alarms, is_announced


def find_failing(session: Session, *, after_id: int, limit: int) -> list[int]:
    """Return jobs beyond ``after_id`` with a sent alarm and no recovery yet, by id.

    Muted jobs are left out.
    """
    is_mute_of_job = or_(Mute.job_id == Job.id, and_(Mute.job_id == 0, Mute.group_id == Job.job_group))
    failing = select(Job.id).where(Job.id > after_id, ~exists().where(is_mute_of_job))
    has_alarm = exists().where(Alarm.job_id == Job.id, is_announced())
    return list(session.scalars(failing.where(has_alarm).order_by(Job.id).limit(limit)))


def find_successes(
    session: Session, job_ids: Collection[int], *, mute_id: int | None = None
) -> dict[int, int]:
    """Return job id -> the newest successful run since its last sent or held alarm.

    The run of that alarm counts as well: its result may have come late. Overlapping runs that ended before
    the alarm do not count, nor do other shards: each shard with an alarm has to succeed. Reads the runs of
    each job newest first, because the index on the result would visit every successful run.
    """
    condition = is_announced() if mute_id is None else Alarm.mute_id == mute_id
    shard_key = (Alarm.job_id, JobLog.executor_sharding_param.label("shard"))
    last = (func.max(Alarm.log_id).label("log_id"), func.max(Alarm.created_ms).label("at_ms"))
    alarms = select(*shard_key, *last).outerjoin(JobLog, JobLog.id == Alarm.log_id)
    since = alarms.where(condition, Alarm.job_id.in_(list(job_ids))).group_by(*shard_key).subquery()
    newest = _newest_success(since.c.job_id, since.c.log_id).correlate(since).scalar_subquery()
    rows = list(session.execute(select(since, newest.label("newest_id"))))
    runs = _find_runs(session, {row.newest_id for row in rows if row.newest_id})
    successes: dict[int, int | None] = {}
    for row in rows:
        other_shards = successes.get(row.job_id, 0)
        if other_shards is not None:
            success_id = _success_after(session, row, runs)
            successes[row.job_id] = max(success_id, other_shards) if success_id is not None else None
    return {job_id: log_id for job_id, log_id in successes.items() if log_id is not None}


class _Run(NamedTuple):
    """When a run ended, and its shard."""

    handle_ms: Millis | None
    shard: str | None


def _find_runs(session: Session, log_ids: Collection[int]) -> dict[int, _Run]:
    if not log_ids:
        return {}
    columns = (JobLog.id, JobLog.handle_time, JobLog.executor_sharding_param)
    rows = session.execute(select(*columns).where(JobLog.id.in_(log_ids)))
    return {row[0]: _Run(*row[1:]) for row in rows}


def _success_after(session: Session, alarm: Row[Any], runs: Mapping[int, _Run]) -> int | None:
    """Return the newest success after an alarm, which has the newest one of any time and shard."""
    if alarm.newest_id is None:
        return None
    # The clocks of nodes may differ by a second.
    from_ms = lower_bound(alarm.at_ms // SECOND_MS * SECOND_MS - SECOND_MS)
    newest = runs.get(alarm.newest_id, _Run(None, None))
    if alarm.shard in (None, newest.shard) and (newest.handle_ms or 0) >= from_ms:
        return int(alarm.newest_id)
    later = _newest_success(alarm.job_id, alarm.log_id).where(JobLog.handle_time >= from_ms)
    return session.scalar(later.where(_no_other_shard(alarm.shard)))


def _no_other_shard(failed: str | None) -> ColumnElement[bool]:
    """Return the condition that a run is no other shard of as many as the one that failed."""
    shard, param = parse_shard(failed), JobLog.executor_sharding_param
    if shard is None:
        return true()
    return or_(param.is_(None), param == failed, param.not_like(f"%/{shard.total}"))


def _newest_success(
    job_id: ColumnElement[int] | int, first_log_id: ColumnElement[int] | int
) -> Select[tuple[int]]:
    since = (
        JobLog.job_id == job_id,
        JobLog.id >= first_log_id,
        unindexed_on_mysql(JobLog.handle_code) == HandleCode.SUCCESS,
    )
    return select(JobLog.id).where(*since).order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(1)


def queue_recovery(session: Session, job_id: int, *, log_id: int, now_ms: Millis) -> None:
    """Close the sent alarms of a job up to a successful run, and queue the message about its recovery.

    Only the first of several concurrent callers does. A run that has an alarm, because its result came late,
    has the recovery instead; while that alarm is being sent nothing is done.
    """
    alarm = session.scalar(select(Alarm).where(Alarm.log_id == log_id).with_for_update())
    if alarm is not None and alarm.state == AlarmState.SENDING:
        return
    update_sent = update(Alarm).where(Alarm.job_id == job_id, is_announced(), Alarm.log_id <= log_id)
    if not affected(session, update_sent.values(state=AlarmState.CLOSED.value)):
        return
    row = {
        "reason": AlarmReason.RECOVERED.value,
        "state": AlarmState.PENDING.value,
        "attempts": 0,
        "created_ms": now_ms,
        "next_ms": now_ms,
        "outcome": None,
        "mute_id": None,
    }
    if alarm is not None:
        affected(session, update(Alarm).where(Alarm.id == alarm.id).values(row))
    else:
        insert_alarms(session, [row | {"log_id": log_id, "job_id": job_id}])


def drop_outdated(session: Session, recoveries: Sequence[Alarm]) -> list[Alarm]:
    """Delete claimed recoveries of jobs that have failed again since; return the others."""
    if not recoveries:
        return []
    session.flush()
    failures = select(Alarm.job_id, func.max(Alarm.log_id).label("log_id")).where(
        Alarm.job_id.in_({alarm.job_id for alarm in recoveries}), Alarm.reason != AlarmReason.RECOVERED
    )
    last = {row.job_id: row.log_id for row in session.execute(failures.group_by(Alarm.job_id))}
    outdated_ids = {alarm.id for alarm in recoveries if last.get(alarm.job_id, 0) > alarm.log_id}
    if outdated_ids:
        affected(session, delete(Alarm).where(Alarm.id.in_(outdated_ids)))
    return [alarm for alarm in recoveries if alarm.id not in outdated_ids]
