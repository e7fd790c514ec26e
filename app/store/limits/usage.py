"""Use of limits: the runs that have their slots, and how many wait. Reads only."""

from collections import Counter
from collections.abc import Collection

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.domain.enums import FireState, LimitKind
from app.domain.limits.waits import parse_wait
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.store.limits import slots
from app.store.pickers.overview import GroupIds, in_groups

#: most waiting runs that are counted
COUNTED_MAX = 10_000


def find_limits(session: Session, limit_ids: Collection[int]) -> dict[int, Limit]:
    """Return the limits of any kind, by id."""
    if not limit_ids:
        return {}
    return {row.id: row for row in session.scalars(select(Limit).where(Limit.id.in_(list(limit_ids))))}


def find_own(session: Session, kind: LimitKind, of_id: int) -> Limit | None:
    """Return the row of a job's or group's own limit; None until a claim has needed one."""
    return session.scalar(select(Limit).where(Limit.kind == kind, Limit.name == str(of_id)))


def count_used_of_jobs(session: Session, job_ids: Collection[int]) -> dict[int, int]:
    """Return job -> its open runs, of a broadcast one."""
    runs = {(run.job_id, run.run_key) for run in slots.find_open(session, job_ids, ())}
    return Counter(job_id for job_id, _key in runs)


def count_used_of_groups(session: Session, group_ids: Collection[int]) -> dict[int, int]:
    """Return group -> the open runs of its jobs."""
    if not group_ids:
        return {}
    query = select(Job.job_group, func.count()).join(Fire, Fire.job_id == Job.id)
    of_groups = query.where(Job.job_group.in_(list(group_ids)), slots.IS_OPEN).group_by(Job.job_group)
    return {row[0]: row[1] for row in session.execute(of_groups)}


def count_waiting(session: Session) -> dict[int, int]:
    """Return limit id -> runs that wait for it, of the first COUNTED_MAX in the order."""
    texts = select(Fire.waits_for).where(Fire.state == FireState.WAITING)
    first = texts.order_by(Fire.deadline_ms, Fire.id).limit(COUNTED_MAX).subquery()
    counts = dict[int, int]()
    query = select(first.c.waits_for, func.count()).group_by(first.c.waits_for)
    for text, count in session.execute(query):
        wait = parse_wait(text)
        if wait is not None:
            counts[wait.limit_id] = counts.get(wait.limit_id, 0) + count
    return counts


def count_waiting_of(session: Session, group_ids: GroupIds, *, limit: int) -> int:
    """Return how many runs of jobs of these groups (None: of all) wait for a limit, at most ``limit``."""
    waiting = select(Fire.id).where(Fire.state == FireState.WAITING)
    if group_ids is not None:
        waiting = waiting.join(Job, Job.id == Fire.job_id).where(*in_groups(Job.job_group, group_ids))
    return session.scalar(select(func.count()).select_from(waiting.limit(limit).subquery())) or 0


def find_jobs(session: Session, limit_id: int, *, limit: int) -> list[tuple[Job, int]]:
    """Return the jobs that use a named limit, with the slots that a run of each takes, by id."""
    query = select(Job, LimitUse.weight).join(LimitUse, LimitUse.job_id == Job.id)
    rows = session.execute(query.where(LimitUse.limit_id == limit_id).order_by(Job.id).limit(limit))
    return [(job, weight) for job, weight in rows]
