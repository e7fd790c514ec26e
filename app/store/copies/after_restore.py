"""Restored databases: fires to settle, and sessions to end."""

from sqlalchemy import ColumnElement, and_, delete, func, not_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.backfills.kinds import BackfillState
from app.domain.enums import TriggerStatus
from app.domain.runs.trigger_keys import ONCE
from app.domain.tasks import TaskState
from app.models.backfill import Backfill
from app.models.fire import Fire
from app.models.job import Job
from app.models.node import Node
from app.models.session import LoginSession
from app.models.task import Task
from app.store.fires import queue as fires
from app.store.fires import scheduled_fires


def find_planned(session: Session, *, now_ms: Millis) -> list[int]:
    """Return the ids of the jobs with a due time or a fire that no one has claimed, ascending."""
    due = select(Job.id).where(
        Job.trigger_status == TriggerStatus.RUNNING, Job.trigger_next_time.between(1, now_ms)
    )
    job_ids = {fire.job_id for fire in scheduled_fires.find_unclaimed(session)}
    return sorted({*session.scalars(due), *job_ids})


def find_open_runs(session: Session, *, up_to: int, limit: int) -> list[int]:
    """Return the lowest ids of runs that have a fire, ascending."""
    rows = select(Fire.log_id).where(Fire.log_id.between(1, up_to)).distinct()
    return [log_id for log_id in session.scalars(rows.order_by(Fire.log_id).limit(limit)) if log_id]


def count_fires(session: Session, *, now_ms: Millis) -> tuple[int, int]:
    """Return how many fires ``take_queued`` would take, and how many runs have a fire."""
    query = select(func.count()).select_from(Fire).where(_is_queued(now_ms))
    return session.scalar(query) or 0, session.scalar(select(func.count(Fire.log_id.distinct()))) or 0


def _is_queued(now_ms: Millis) -> ColumnElement[bool]:
    """Return the condition for fires that have no run and are not planned for later."""
    is_planned = and_(Fire.fire_key.like(f"{ONCE}:%"), Fire.due_time > now_ms)
    return and_(Fire.log_id.is_(None), not_(is_planned))


def take_queued(session: Session, *, now_ms: Millis) -> list[bulk.Row]:
    """Delete the fires that have no run, but for runs planned for later; return jobs, times and types.

    Leaves those that are being claimed: they have a run.
    """
    logical_ms = func.coalesce(Fire.logical_ms, Fire.due_time).label("logical_ms")
    rows = select(Fire.id, Fire.job_id, logical_ms, Fire.trigger_type).where(_is_queued(now_ms))
    queued_rows = bulk.read_rows(session, rows.order_by(Fire.id).with_for_update(skip_locked=True))
    fires.delete_fires(session, [row.id for row in queued_rows])
    return [
        {"job_id": row.job_id, "logical_ms": row.logical_ms, "trigger_type": row.trigger_type}
        for row in queued_rows
    ]


def end_logins(session: Session) -> int:
    """Delete all login sessions, also those that were ended after the backup; return how many."""
    return affected(session, delete(LoginSession))


def forget_heartbeats(session: Session) -> None:
    """Mark all nodes as stopped."""
    affected(session, update(Node).values(heartbeat_ms=0))


def cancel_tasks(session: Session, *, now_ms: Millis) -> int:
    """Cancel the background tasks that had not ended; return how many."""
    going = update(Task).where(Task.state.in_((TaskState.PENDING, TaskState.RUNNING)))
    values = {"state": TaskState.CANCELLED.value, "finished_ms": now_ms, "lease_until": 0}
    return affected(session, going.values(values))


def pause_backfills(session: Session, *, reason: str, now_ms: Millis) -> int:
    """Pause the backfills that start runs, with a packed reason; return how many."""
    running = update(Backfill).where(Backfill.state == BackfillState.RUNNING.value)
    values = {"state": BackfillState.PAUSED.value, "reason": reason, "updated_ms": now_ms}
    return affected(session, running.values(values))
