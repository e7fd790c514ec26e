"""Prepared fires: routed and logged before they are due; see ``pipeline.prepare``.

They are PENDING and were never claimed, but have a log row.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, and_, bindparam, case, exists, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.database.sql.planner_hints import unindexed_on_sqlite
from app.domain.enums import FireState
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.store.fires import logs
from app.store.fires.queue import PendingFire, by_id

_IS_PREPARED = and_(
    unindexed_on_sqlite(Fire.state) == FireState.PENDING, Fire.epoch == 0, Fire.log_id.is_not(None)
)
#: Subqueries are read by key for each fire, whereas PostgreSQL would begin a join with all open runs.
_EDITED = select(Job.update_time).where(Job.id == Fire.job_id).scalar_subquery()
_UNSENT = select(case((logs.is_unsent(), 1), else_=0)).where(JobLog.id == Fire.log_id).scalar_subquery()
_LOCKED = (
    by_id(select(Fire.id, _EDITED, _UNSENT))
    .where(among(Fire.id), _IS_PREPARED)
    .order_by(Fire.id)
    .with_for_update(skip_locked=True)
)
#: Each run has an instant of its own, before which it is not sent.
_CLAIMED = (
    update(Fire)
    .where(among(Fire.id))
    .values(
        state=FireState.SENDING.value,
        attempt=1,
        owner=bindparam("by"),
        epoch=1,
        lease_until=bindparam("until_ms"),
        sent_ms=case((Fire.due_time > bindparam("now_ms"), Fire.due_time), else_=bindparam("now_ms")),
    )
)


def lock_with_edits(session: Session, fire_ids: Sequence[int]) -> dict[int, Millis | None]:
    """Lock those of the fires that are still prepared; return those whose run has no result.

    As fire id -> when its job was edited last; None: there is no such job. Jobs and log rows are read
    without a lock.
    """
    return {row[0]: row[1] for row in bulk.read_among(session, _LOCKED, fire_ids) if row[2]}


def claim(
    session: Session, fire_ids: Sequence[int], *, owner: str, lease_until: Millis, now_ms: Millis
) -> None:
    """Mark locked fires as claimed now and sent at their instants, or now if those have passed."""
    if fire_ids:
        parameters = {WANTED: list(fire_ids), "by": owner, "until_ms": lease_until, "now_ms": now_ms}
        direct.change(session, _CLAIMED, parameters)


def undo(session: Session, pending: Sequence[PendingFire]) -> list[PendingFire]:
    """Delete the log rows of the prepared ones of locked fires, which are routed anew; return all fires.

    A log row with a result stays. One that is missing was cleared by a Java admin, which does not know fires:
    the run was never sent, so its instant is still to run.
    """
    log_ids = {fire.id: fire.log_id for fire in pending if fire.log_id and fire.is_prepared}
    if not log_ids:
        return list(pending)
    ended_ids = logs.find_ended(session, list(log_ids.values()))
    log_id_by_fire = {fire_id: log_id for fire_id, log_id in log_ids.items() if log_id not in ended_ids}
    bulk.update_many(
        session, Fire, [{"id": fire_id, "log_id": None, "address": None} for fire_id in log_id_by_fire]
    )
    logs.delete_logs(session, list(log_id_by_fire.values()))
    return [
        fire._replace(log_id=None, address=None) if fire.id in log_id_by_fire else fire for fire in pending
    ]


def is_ahead() -> ColumnElement[bool]:
    """Return the condition for log rows of prepared fires: their runs are still to come."""
    return exists().where(Fire.log_id == JobLog.id, _IS_PREPARED)


def find_logs(session: Session, log_ids: Collection[int]) -> set[int]:
    """Return those of the log rows whose fires are prepared: their runs are still to come."""
    rows = session.scalars(select(Fire.log_id).where(Fire.log_id.in_(log_ids), _IS_PREPARED))
    return {log_id for log_id in rows if log_id}
