"""Archived logs of the runs in progress on instances."""

from collections.abc import Collection

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.domain.enums import FireState
from app.domain.executors.addresses import spellings
from app.models.archive import LogArchive
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.store.archive.modes import MODE
from app.store.archive.rows import AcceptedRun

#: runs of which the logs are fetched at once; of the others when they are due
AT_ONCE_MAX = 2_000


def find_at_instances(session: Session, addresses: Collection[str]) -> list[tuple[AcceptedRun, bool]]:
    """Return runs in progress at addresses, and whether they have an archived log already."""
    query = (
        select(
            JobLog.id,
            JobLog.job_id,
            JobLog.job_group,
            func.coalesce(Fire.logical_ms, Fire.due_time),
            MODE,
            LogArchive.id,
        )
        .select_from(Fire)
        .join(JobLog, JobLog.id == Fire.log_id)
        .join(Job, Job.id == Fire.job_id)
        .outerjoin(LogArchive, LogArchive.log_id == Fire.log_id)
        .where(
            Fire.state == FireState.ACCEPTED,
            Fire.address.in_(spellings(addresses)),
        )
        .order_by(Fire.id)
        .limit(AT_ONCE_MAX)
    )
    return [(AcceptedRun(*row[:-1]), row[-1] is not None) for row in session.execute(query)]
