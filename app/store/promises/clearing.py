"""Ends of promises and incidents: of deleted jobs, by retention, and after a restore."""

from collections.abc import Collection

from sqlalchemy import and_, delete, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import AlarmState, IncidentState, PromiseKind
from app.domain.promises.promise import read_promises
from app.models.promise import Incident, IncidentMessage, JobPromise, PromiseCheck
from app.store.promises.incidents import LIVE

_ENDED = (IncidentState.KEPT_AGAIN.value, IncidentState.WITHDRAWN.value)


def withdraw_of_jobs(session: Session, job_ids: Collection[int], *, now_ms: Millis) -> None:
    """Withdraw the incidents of jobs that are deleted; their messages that wait are not sent."""
    live = update(Incident).where(Incident.job_id.in_(list(job_ids)), Incident.state.in_(LIVE))
    values = {"state": IncidentState.WITHDRAWN.value, "ended_ms": now_ms}
    affected(session, live.values(values))


def delete_ended(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete the oldest incidents that ended before a time, with their messages; return how many."""
    old = (Incident.state.in_(_ENDED), Incident.opened_ms < before_ms, Incident.ended_ms < before_ms)
    ids = list(session.scalars(select(Incident.id).where(*old).order_by(Incident.id).limit(limit)))
    if ids:
        affected(session, delete(IncidentMessage).where(IncidentMessage.incident_id.in_(ids)))
        affected(session, delete(Incident).where(Incident.id.in_(ids)))
    return len(ids)


def restart_promises(session: Session, *, now_ms: Millis) -> None:
    """Begin the promises of a restored database now: what was due before is not evaluated.

    One of a success at least every so often has its whole time again. Messages that waited are not sent: they
    were, or the incident has been acknowledged since the backup.
    """
    query = select(PromiseCheck.id, JobPromise.definition).join(
        JobPromise, (JobPromise.job_id == PromiseCheck.job_id) & (JobPromise.number == PromiseCheck.number)
    )
    windows = session.execute(query.where(JobPromise.kind == PromiseKind.SUCCEEDS_EVERY.value)).all()
    later = [
        {"id": row.id, "due_ms": now_ms + promise.limit_ms}
        for row in windows
        for promise in read_promises(f"[{row.definition}]")
    ]
    bulk.update_many(session, PromiseCheck, later)
    # The runs of instants before may be lost, although they succeeded.
    is_past = and_(PromiseCheck.logical_ms > 0, PromiseCheck.logical_ms <= now_ms)
    affected(session, delete(PromiseCheck).where(or_(PromiseCheck.due_ms <= now_ms, is_past)))
    late = update(JobPromise).where(JobPromise.planned_until_ms < now_ms)
    affected(session, late.values(planned_until_ms=now_ms))
    waits = IncidentMessage.state.in_([AlarmState.PENDING.value, AlarmState.SENDING.value])
    affected(session, update(IncidentMessage).where(waits).values(state=AlarmState.SILENT.value))
