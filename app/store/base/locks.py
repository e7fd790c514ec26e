"""Row locks, always taken in this order: lock row, job, log, fire, limit; ids ascending."""

from collections.abc import Collection, Iterable

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import among
from app.models.job import Job
from app.models.lock import IMPORT_LOCK, SCHEDULE_LOCK, Lock

_TOUCHED = update(Lock).where(Lock.lock_name == bindparam("named")).values(lock_name=Lock.lock_name)
#: The statement is built once, because every trigger begins with it.
_LOCKED_GROUP = select(Job.job_group).where(Job.id == bindparam("given")).with_for_update()
_LOCKED_GROUPS = select(Job.id, Job.job_group).where(among(Job.id)).order_by(Job.id).with_for_update()


def take_schedule_lock(session: Session) -> None:
    """Exclude all other schedulers of this database until the commit.

    Must be the first statement of its transaction. Updates the row to itself: that locks on SQLite too, and
    the SELECT … FOR UPDATE of a Java admin waits for it.
    """
    _take(session, SCHEDULE_LOCK)


def take_import_lock(session: Session) -> None:
    """Exclude all other imports until the commit, so that no two insert the same job.

    Taken before the schedule lock.
    """
    _take(session, IMPORT_LOCK)


def _take(session: Session, name: str) -> None:
    parameters = {"named": name}
    if direct.change(session, _TOUCHED, parameters) == 0:
        # Of two concurrent callers the second waits for the row of the first, then for its commit.
        bulk.insert_ignore(session, Lock, [{"lock_name": name}])
        direct.change(session, _TOUCHED, parameters)


def lock_group_of(session: Session, job_id: int) -> int | None:
    """Lock a job and return the id of its executor group alone; None: there is no such job."""
    rows = direct.read(session, _LOCKED_GROUP, {"given": job_id})
    return int(rows[0][0]) if rows else None


def lock_groups_of(session: Session, job_ids: Collection[int]) -> dict[int, int]:
    """Lock jobs and return their executor groups, by id, of those that exist."""
    rows = bulk.read_among(session, _LOCKED_GROUPS, sorted(job_ids))
    return {row[0]: row[1] for row in rows}


def lock_jobs(session: Session, job_ids: Iterable[int], *, skip_locked: bool = False) -> list[Job]:
    """Lock and return the jobs that exist, ids ascending; ``skip_locked``: without those locked by others."""
    rows = select(Job).where(Job.id.in_(sorted(job_ids))).order_by(Job.id)
    statement = rows.with_for_update(skip_locked=skip_locked)
    return list(session.scalars(statement.execution_options(populate_existing=True)))
