"""Neighbours of a run in the history of its job, and the runs of a manual trigger. Reads only.

Every statement reads a bounded part of an index, however long the log is.
"""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.enums import HELD_BACK, FireState, HandleCode
from app.domain.runs.trigger_keys import Trigger, trigger_of
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.skip import Skip

#: most runs of a job that are searched for its previous success
SUCCESS_SEARCHED = 500
#: most shards of a broadcast
SHARDS_MAX = 200
#: longest time between the claims of the shards of a broadcast
CLAIMED_WITHIN_MS: Millis = 60_000

_COLUMNS = (JobLog.id, JobLog.job_group, JobLog.trigger_time)


class Neighbour(NamedTuple):
    """A run of the same job."""

    id: int
    job_group: int
    trigger_time: Millis


class Shard(NamedTuple):
    """A run of a broadcast."""

    id: int
    job_group: int
    executor_sharding_param: str
    trigger_code: int
    handle_code: int
    killed: int
    trigger_time: Millis
    handle_time: Millis | None
    duration_ms: Millis | None


def find_previous(session: Session, log: JobLog) -> Neighbour | None:
    """Return the run of the same job before this one."""
    before = select(*_COLUMNS).where(*_before(log))
    return _first(session, before.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()))


def find_next(session: Session, log: JobLog) -> Neighbour | None:
    """Return the run of the same job after this one."""
    later = or_(JobLog.trigger_time > log.trigger_time, JobLog.id > log.id)
    after = select(*_COLUMNS).where(
        JobLog.job_id == log.job_id, JobLog.trigger_time >= log.trigger_time, later
    )
    return _first(session, after.order_by(JobLog.trigger_time, JobLog.id))


def find_previous_success(session: Session, log: JobLog) -> Neighbour | None:
    """Return the last run of the same job that succeeded before this one, of the last SUCCESS_SEARCHED."""
    columns = (JobLog.id, JobLog.job_group, JobLog.trigger_time, JobLog.handle_code)
    before = select(*columns).where(*_before(log))
    newest_first = before.order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    recent = newest_first.limit(SUCCESS_SEARCHED).subquery()
    successes = select(recent.c.id, recent.c.job_group, recent.c.trigger_time).where(
        recent.c.handle_code == HandleCode.SUCCESS
    )
    return _first(session, successes.order_by(recent.c.trigger_time.desc(), recent.c.id.desc()))


def find_shards(session: Session, log: JobLog) -> list[Shard]:
    """Return the runs of a broadcast, the given one included, at most SHARDS_MAX.

    Shards are claimed together; a retry of one is triggered later, and not one of them.
    """
    if log.trigger_time is None or not log.executor_sharding_param:
        return []
    near = JobLog.trigger_time.between(
        log.trigger_time - CLAIMED_WITHIN_MS, log.trigger_time + CLAIMED_WITHIN_MS
    )
    query = select(*(getattr(JobLog, name) for name in Shard._fields)).where(
        JobLog.job_id == log.job_id, near, JobLog.executor_sharding_param.is_not(None)
    )
    if log.fire_time is not None:
        query = query.where(JobLog.fire_time == log.fire_time)
    elif log.trigger_key is not None:
        query = query.where(JobLog.trigger_key == log.trigger_key)
    elif log.source_log_id is not None:
        query = query.where(JobLog.source_log_id == log.source_log_id)
    else:
        return []
    rows = session.execute(query.order_by(JobLog.id).limit(SHARDS_MAX))
    return [Shard(*row) for row in rows]


class Root(NamedTuple):
    """First run of a chain."""

    id: int
    job_id: int
    job_group: int


class WaitingFire(NamedTuple):
    """A fire without a run."""

    id: int
    due_ms: Millis
    #: what its run stands for
    logical_ms: Millis
    #: whether it waits for a limit or the end of a blackout
    is_limited: bool = False
    chain: int | None = None
    round_id: int | None = None


def find_waiting(session: Session, trigger: Trigger, *, is_moved: bool = False) -> list[WaitingFire]:
    """Return the fires of a trigger that wait for their first claim, a limit or a blackout.

    There are several of a broadcast. ``is_moved``: the time of the fire may differ from that of the trigger,
    because a clock that was ahead has been set back; this reads all waiting fires of the job.
    """
    columns = (Fire.id, Fire.fire_key, Fire.due_time, Fire.logical_ms, Fire.state, Fire.chain, Fire.round_id)
    pending = select(*columns).where(
        Fire.state.in_([FireState.PENDING, *HELD_BACK]),
        Fire.log_id.is_(None),
        Fire.job_id == trigger.job_id,
    )
    query = pending if is_moved else pending.where(Fire.due_time == trigger.due_ms)
    return [
        WaitingFire(
            row.id,
            row.due_time,
            row.due_time if row.logical_ms is None else row.logical_ms,
            row.state in HELD_BACK,
            row.chain,
            row.round_id,
        )
        for row in session.execute(query)
        if trigger_of(trigger.job_id, row.fire_key) == trigger
    ]


def find_root(session: Session, chain: int) -> Root | None:
    """Return the first run of a chain, that of the trigger with this number."""
    query = select(JobLog.id, JobLog.job_id, JobLog.job_group).where(JobLog.trigger_key == chain)
    row = session.execute(query.order_by(JobLog.id).limit(1)).one_or_none()
    return Root._make(row) if row is not None else None


def find_triggered(session: Session, trigger: Trigger) -> list[int]:
    """Return the ids of the runs a trigger became, ascending; a broadcast has several."""
    query = select(JobLog.id, JobLog.job_id).where(JobLog.trigger_key == trigger.number).order_by(JobLog.id)
    return [row.id for row in session.execute(query) if row.job_id == trigger.job_id]


def find_skip(session: Session, trigger: Trigger) -> Skip | None:
    """Return the skip of a triggered run that a limit has kept from running."""
    query = select(Skip).where(
        Skip.job_id == trigger.job_id,
        Skip.recorded_ms >= trigger.due_ms - DAY_MS,
        Skip.trigger_key == trigger.number,
    )
    return session.scalar(query.order_by(Skip.recorded_ms, Skip.id).limit(1))


def find_trigger_user(session: Session, job_id: int, at_ms: Millis) -> str:
    """Return the name of the user who triggered a job at this instant; empty if it is not known."""
    query = select(AuditEntry.username).where(
        AuditEntry.at_ms == at_ms,
        AuditEntry.object_type == "job",
        AuditEntry.object_id == job_id,
        AuditEntry.action == "job.trigger",
    )
    return session.scalar(query.limit(1)) or ""


def _before(log: JobLog) -> tuple[ColumnElement[bool], ...]:
    earlier = or_(JobLog.trigger_time < log.trigger_time, JobLog.id < log.id)
    return JobLog.job_id == log.job_id, JobLog.trigger_time <= log.trigger_time, earlier


def _first(session: Session, query: Select[Any]) -> Neighbour | None:
    row = session.execute(query.limit(1)).first()
    return Neighbour._make(row) if row is not None else None
