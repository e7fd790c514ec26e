"""Counting the runs of a day, and deleting old rows in small batches."""

from dataclasses import dataclass

from sqlalchemy import and_, case, delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import affected
from app.models.audit import AuditEntry
from app.models.log import JobLog
from app.models.report import DayReport
from app.models.session import LoginSession
from app.models.skip import Skip
from app.store import fires


@dataclass(frozen=True, slots=True)
class Counts:
    """Runs of a day. What is neither running nor succeeded has failed."""

    running: int
    succeeded: int
    failed: int


def count_runs(session: Session, *, from_ms: Millis, until_ms: Millis) -> Counts:
    """Count the runs triggered from one instant up to another, which is not included. Source: XXL-JOB 2.4.1 log report."""
    running = and_(JobLog.trigger_code.in_([0, 200]), JobLog.handle_code == 0)
    counted = select(
        func.count().label("total"),
        func.sum(case((running, 1), else_=0)).label("running"),
        func.sum(case((JobLog.handle_code == 200, 1), else_=0)).label("succeeded"),
    ).where(JobLog.trigger_time >= from_ms, JobLog.trigger_time < until_ms)
    row = session.execute(counted).one()
    running_count, succeeded = int(row.running or 0), int(row.succeeded or 0)
    return Counts(running_count, succeeded, row.total - running_count - succeeded)


def save_report(session: Session, day_ms: Millis, counts: Counts, *, now_ms: Millis) -> None:
    """Write a day's counts. Another node may insert the day at the same time: the unique index lets one through."""
    values = {
        "running_count": counts.running,
        "suc_count": counts.succeeded,
        "fail_count": counts.failed,
        "update_time": now_ms,
    }
    if not affected(session, update(DayReport).where(DayReport.trigger_day == day_ms).values(values)):
        session.execute(insert(DayReport).values(trigger_day=day_ms, **values))


def delete_logs_before(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete the oldest log rows triggered before an instant, with their fires; return how many."""
    oldest = select(JobLog.id).where(JobLog.trigger_time < before_ms).order_by(JobLog.trigger_time, JobLog.id).limit(limit)
    ids = list(session.scalars(oldest))
    if ids:
        fires.delete_of_logs(session, ids)
        affected(session, delete(JobLog).where(JobLog.id.in_(ids)))
    return len(ids)


def delete_expired_sessions(session: Session, *, now_ms: Millis) -> int:
    """Delete logins that are over."""
    return affected(session, delete(LoginSession).where(LoginSession.expires_ms < now_ms))


def delete_traces_before(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete skips and audit rows recorded before an instant, the oldest first; return how many of the kind that had more."""
    skips = select(Skip.id).where(Skip.recorded_ms < before_ms).order_by(Skip.id).limit(limit)
    entries = select(AuditEntry.id).where(AuditEntry.at_ms < before_ms).order_by(AuditEntry.id).limit(limit)
    skip_ids, entry_ids = list(session.scalars(skips)), list(session.scalars(entries))
    affected(session, delete(Skip).where(Skip.id.in_(skip_ids)))
    affected(session, delete(AuditEntry).where(AuditEntry.id.in_(entry_ids)))
    return max(len(skip_ids), len(entry_ids))
