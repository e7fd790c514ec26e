"""Row locks, always taken in this order: lock row, job, log, fire; ids ascending."""

from collections.abc import Iterable

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.db import affected
from app.models.job import Job
from app.models.lock import SCHEDULE_LOCK, Lock


def take_schedule_lock(session: Session) -> None:
    """Exclude all other schedulers of this database until the commit; must be the transaction's first statement.

    An UPDATE of the row onto itself: it holds on SQLite too, and a Java admin's SELECT … FOR UPDATE waits for it.
    """
    own = update(Lock).where(Lock.lock_name == SCHEDULE_LOCK).values(lock_name=Lock.lock_name)
    if affected(session, own) == 0:
        session.execute(insert(Lock).values(lock_name=SCHEDULE_LOCK))


def lock_jobs(session: Session, job_ids: Iterable[int]) -> list[Job]:
    """Return the jobs that exist, locked, ids ascending."""
    rows = select(Job).where(Job.id.in_(sorted(job_ids))).order_by(Job.id).with_for_update()
    return list(session.scalars(rows.execution_options(populate_existing=True)))
