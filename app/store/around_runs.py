"""Runs around a run: its neighbours in the history of its job, and what a trigger by hand led to. Reads only.

Every statement reads a bounded part of an index, however long the log is.
"""

from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.domain.enums import HandleCode, TriggerType
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.log import JobLog

#: most runs of a job that are searched for its previous success
SUCCESS_SEARCHED = 500
#: most manual runs of a job that are searched for the one that was triggered at an instant
MANUAL_SEARCHED = 50


class Neighbour(NamedTuple):
    """A run of the same job."""

    id: int
    job_group: int


def find_previous(session: Session, log: JobLog) -> Neighbour | None:
    """Return the run of the same job before this one."""
    before = select(JobLog.id, JobLog.job_group).where(*_before(log))
    return _first(session, before.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()))


def find_next(session: Session, log: JobLog) -> Neighbour | None:
    """Return the run of the same job after this one."""
    later = or_(JobLog.trigger_time > log.trigger_time, JobLog.id > log.id)
    after = select(JobLog.id, JobLog.job_group).where(
        JobLog.job_id == log.job_id, JobLog.trigger_time >= log.trigger_time, later
    )
    return _first(session, after.order_by(JobLog.trigger_time, JobLog.id))


def find_previous_success(session: Session, log: JobLog) -> Neighbour | None:
    """Return the last run of the same job that succeeded before this one, of the last SUCCESS_SEARCHED."""
    columns = (JobLog.id, JobLog.job_group, JobLog.trigger_time, JobLog.handle_code)
    before = select(*columns).where(*_before(log))
    ordered = before.order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    recent = ordered.limit(SUCCESS_SEARCHED).subquery()
    succeeded = select(recent.c.id, recent.c.job_group).where(recent.c.handle_code == HandleCode.SUCCESS)
    return _first(session, succeeded.order_by(recent.c.trigger_time.desc(), recent.c.id.desc()))


class QueuedFire(NamedTuple):
    """A fire that has not ended; ``log_id`` None: it waits for its claim."""

    log_id: int | None


def find_fire(session: Session, fire_key: str) -> QueuedFire | None:
    """Return the fire with this key; of a broadcast that of its first shard."""
    query = select(Fire.log_id).where(Fire.fire_key.in_([fire_key, f"{fire_key}:0"])).order_by(Fire.id)
    row = session.execute(query.limit(1)).first()
    return QueuedFire(row.log_id) if row is not None else None


def find_manual_since(session: Session, job_id: int, since_ms: Millis) -> list[tuple[int, str | None]]:
    """Return id and trace of the first manual runs of a job from the second of ``since_ms`` on."""
    query = select(JobLog.id, JobLog.trigger_msg).where(
        JobLog.job_id == job_id,
        JobLog.trigger_time >= since_ms // SECOND_MS * SECOND_MS,
        JobLog.trigger_type == TriggerType.MANUAL,
    )
    ordered = query.order_by(JobLog.trigger_time, JobLog.id).limit(MANUAL_SEARCHED)
    return [(row.id, row.trigger_msg) for row in session.execute(ordered)]


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


def _first(session: Session, ordered: Select[tuple[int, int]]) -> Neighbour | None:
    row = session.execute(ordered.limit(1)).first()
    return Neighbour._make(row) if row is not None else None
