"""Fires that wait for a limit, as a claim reads and writes them."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import FireState, HandleCode, TriggerCode, WhenFull
from app.domain.limits.waits import WaitReason
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog


class WaitingColumns(NamedTuple):
    """What a waiting fire has besides those of every due one."""

    #: place in the order
    place: Millis
    limit_key: str
    waits_for: str


_COLUMNS = select(Fire.id, Fire.state, Fire.deadline_ms, Fire.limit_key, Fire.waits_for).where(among(Fire.id))


def find_waiting(session: Session, fire_ids: Collection[int]) -> dict[int, WaitingColumns]:
    """Return those of the fires that wait, by id."""
    rows = bulk.read_among(session, _COLUMNS, sorted(fire_ids)) if fire_ids else ()
    return {row[0]: WaitingColumns(*row[2:]) for row in rows if row[1] == FireState.WAITING}


_REPLACING = select(Fire.job_id, Fire.limit_key).where(
    Fire.state == FireState.WAITING, Fire.waits_for.like(f"% {WaitReason.REPLACING} %")
)


def find_to_replace(session: Session) -> list[JobLog]:
    """Return the runs that executors have and that are to end for a waiting one of their job and key.

    None of a job whose `when_full` has been changed since.
    """
    pairs = {(row[0], row[1]) for row in bulk.read_rows(session, _REPLACING.distinct())}
    if not pairs:
        return []
    job_ids, keys = {job_id for job_id, _ in pairs}, sorted({key for _, key in pairs})
    running = (
        select(JobLog, Fire.job_id, Fire.limit_key, Job.limit_key)
        .join(Fire, Fire.log_id == JobLog.id)
        .join(Job, Job.id == Fire.job_id)
        .where(
            Fire.state == FireState.ACCEPTED,
            among(Fire.job_id, sorted(job_ids)),
            or_(
                func.coalesce(Job.limit_key, "") == "",
                among(Fire.limit_key, keys),
            ),
            Job.when_full == WhenFull.REPLACE,
            JobLog.trigger_code == TriggerCode.ACCEPTED,
            JobLog.handle_code == HandleCode.NONE,
        )
    )
    return [
        log
        for log, job_id, key, template in session.execute(running.order_by(JobLog.id))
        if (job_id, key) in pairs or (not template and job_id in job_ids)
    ]
