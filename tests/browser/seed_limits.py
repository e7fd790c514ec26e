"""Sample limits: a database that some jobs share, limits of a job and of an executor, runs that wait."""

import json
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.domain.enums import FireState, LimitKind, TriggerCode
from app.domain.limits.waits import Wait, WaitReason
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.models.log import JobLog

NAMES = {"en": ("reporting database", "partner interface"), "zh_CN": ("报表数据库", "合作方接口")}
#: index of a job -> slots of the database that its runs take, priority
SHARES = {3: (2, 5), 8: (1, 7), 1: (1, 5)}
NO_END: Millis = 2**62


def add_limits(
    session: Session, groups: Sequence[Group], jobs: Sequence[Job], language: str, now_ms: Millis
) -> int:
    """Give the runs in progress their slots, and let others wait; return the id of the shared limit."""
    database, interface = NAMES.get(language, NAMES["en"])
    groups[2].max_running, jobs[4].max_running = 8, 1
    shared = Limit(kind=LimitKind.NAMED.value, name=database, slots=3)
    own = Limit(kind=LimitKind.JOB.value, name=str(jobs[4].id))
    session.add_all([shared, own, Limit(kind="named", name=interface, slots=10, group_id=groups[0].id)])
    session.flush()
    for index, (weight, priority) in SHARES.items():
        jobs[index].limits = json.dumps([{"limit": database, "weight": weight}])
        jobs[index].priority = priority
        session.add(LimitUse(job_id=jobs[index].id, limit_id=shared.id, weight=weight))
    running = session.scalars(select(Fire).where(Fire.state == FireState.ACCEPTED).order_by(Fire.id))
    holders = [fire.log_id for fire in running.all() if _admit(fire) and fire.log_id is not None]
    full = Wait(shared.id, WaitReason.FULL, 3, 3, tuple(holders))
    _wait(session, jobs[8], full, now_ms - 2 * MINUTE_MS, place=now_ms - 22 * MINUTE_MS)
    _wait(session, jobs[1], full, now_ms - 90 * SECOND_MS)
    _wait(session, jobs[3], full, now_ms - 40 * SECOND_MS)
    held_id = _hold(session, jobs[4])
    _wait(session, jobs[4], Wait(own.id, WaitReason.FULL, 1, 1, (held_id,)), now_ms - 25 * SECOND_MS)
    return shared.id


def _admit(fire: Fire) -> bool:
    fire.admitted_ms = fire.due_time
    return True


def _hold(session: Session, job: Job) -> int:
    """Let the unresolved run of a job hold its slot; return its id."""
    query = select(JobLog).where(JobLog.job_id == job.id, JobLog.trigger_code == TriggerCode.UNRESOLVED)
    log = session.scalars(query.limit(1)).one()
    fire = _fire(job, log.trigger_time or 0, FireState.HELD)
    fire.log_id, fire.admitted_ms = log.id, log.trigger_time or 0
    session.add(fire)
    return log.id


def _wait(session: Session, job: Job, wait: Wait, due_ms: Millis, *, place: Millis = 0) -> None:
    fire = _fire(job, due_ms, FireState.WAITING)
    fire.deadline_ms, fire.lease_until, fire.waits_for = place or due_ms, NO_END, wait.text
    session.add(fire)


def _fire(job: Job, due_ms: Millis, state: FireState) -> Fire:
    key = f"cron:{job.id}:{due_ms}"
    return Fire(job_id=job.id, fire_key=key, due_time=due_ms, trigger_type="CRON", state=state.value)
