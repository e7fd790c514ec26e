"""Deletion of alarms by retention and by clearings of the log."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, delete, exists, func, not_, select
from sqlalchemy.orm import Session, aliased

from app.clock import Millis
from app.database.engine import affected
from app.domain.enums import AlarmState
from app.models.alarm import Alarm
from app.models.job import Job
from app.models.mute import Mute
from app.store.alarms.alarms import is_announced

#: neither pending nor being sent
_SETTLED = Alarm.state.not_in([AlarmState.PENDING, AlarmState.SENDING])


def delete_old(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete the oldest settled alarms; return how many.

    The last alarm per job that a mute holds is kept, however old, for the summary, and the last one sent for
    the recovery.
    """
    last_held = (
        select(func.max(Alarm.id))
        .where(Alarm.mute_id.in_(select(Mute.id)))
        .group_by(Alarm.mute_id, Alarm.job_id)
    )
    old = (Alarm.created_ms < before_ms, _SETTLED, Alarm.id.not_in(last_held), not_(_may_recover()))
    return _delete(
        session, list(session.scalars(select(Alarm.id).where(*old).order_by(Alarm.id).limit(limit)))
    )


def delete_of_runs(session: Session, log_ids: Sequence[int]) -> None:
    """Delete the settled alarms of runs, except those held by a mute or kept for a recovery."""
    is_held = and_(Alarm.mute_id.is_not(None), Alarm.mute_id.in_(select(Mute.id)))
    query = select(Alarm.id, Alarm.job_id).where(Alarm.log_id.in_(log_ids), _SETTLED, not_(is_held))
    rows = session.execute(query).all()
    if not rows:
        return
    # The last alarms are read once per job, because a condition on each alarm would read all later ones.
    job_ids = {row.job_id for row in rows}
    existing = select(Job.id).where(Job.id.in_(job_ids))
    last = select(func.max(Alarm.id)).where(Alarm.job_id.in_(existing), is_announced()).group_by(Alarm.job_id)
    last_ids = set(session.scalars(last))
    _delete(session, [row.id for row in rows if row.id not in last_ids])


def _may_recover() -> ColumnElement[bool]:
    """Return the condition that an alarm is the last one sent of an existing job."""
    later = aliased(Alarm)
    has_later = exists().where(later.job_id == Alarm.job_id, is_announced(later), later.id > Alarm.id)
    return and_(is_announced(), exists().where(Job.id == Alarm.job_id), ~has_later)


def _delete(session: Session, alarm_ids: Sequence[int]) -> int:
    """Delete alarms by id, because MySQL and MariaDB refuse a delete that reads its own table."""
    if not alarm_ids:
        return 0
    return affected(session, delete(Alarm).where(Alarm.id.in_(alarm_ids), _SETTLED))
