"""Statements that delete jobs with everything that belongs to them."""

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.database.rows import bulk, deletion
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.domain.enums import LimitKind
from app.models.alarm import Alarm
from app.models.code import JobVersion
from app.models.favourite import Favourite
from app.models.glue import GlueVersion
from app.models.job import Job
from app.models.limit import LimitUse
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.promise import JobPromise, PromiseCheck
from app.models.skip import Skip
from app.models.tag import JobTag
from app.store.alarms import channels
from app.store.fires import queue as fires
from app.store.limits import listing as limits
from app.store.rounds import editing as rounds
from app.store.runs import clearing as log_clearing

#: rows deleted by one statement
DELETE_BATCH = 1_000
#: tables whose rows are deleted by the id of their job
_OF_JOB = (GlueVersion, JobVersion, Skip, Alarm, JobTag, Favourite, PromiseCheck, JobPromise, LimitUse)
_MUTES = select(Mute.id).where(among(Mute.job_id)).order_by(Mute.id)
_RUNS = select(JobLog.id).where(among(JobLog.job_id)).limit(bindparam("most"))


def delete_logs_batch(session: Session, job_ids: Sequence[int]) -> int:
    """Delete up to DELETE_BATCH log rows of these jobs with their fires and alarms; return how many."""
    parameters = {WANTED: list(job_ids), "most": DELETE_BATCH}
    ids = [row[0] for row in direct.read(session, _RUNS, parameters)]
    if ids:
        log_clearing.delete_runs(session, ids)
    return len(ids)


def delete_jobs(session: Session, job_ids: Sequence[int]) -> None:
    """Delete jobs with fires, runs, rounds, versions, skips, alarms, mutes, tags, promises and scopes."""
    deletion.by_values(session, Job, "id", job_ids)
    # Mutes are deleted before the alarms and by id, in the order of the monitor that ends mutes: in another
    # order both could deadlock.
    mute_ids = [row[0] for row in bulk.read_among(session, _MUTES, job_ids)]
    deletion.by_values(session, Mute, "id", mute_ids)
    while delete_logs_batch(session, job_ids) == DELETE_BATCH:
        pass
    fires.delete_of_jobs(session, job_ids)
    while delete_logs_batch(session, job_ids) == DELETE_BATCH:  # Fires may have been claimed meanwhile.
        pass
    channels.forget(session, job_ids=job_ids)
    limits.delete_own(session, LimitKind.JOB, job_ids)
    rounds.delete_of_jobs(session, job_ids)
    for model in _OF_JOB:
        deletion.by_values(session, model, "job_id", job_ids)
