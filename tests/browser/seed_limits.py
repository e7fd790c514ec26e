"""Sample limits: a database that some jobs share, limits of a job and of an executor, runs that wait."""

import json
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.domain.enums import FireState, HandleCode, LimitKind, TriggerCode
from app.domain.limits.waits import Wait, WaitReason
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.models.log import JobLog

NAMES = {"en": ("reporting database", "partner interface"), "zh_CN": ("报表数据库", "合作方接口")}
NO_END: Millis = 2**62


def add_limits(
    session: Session, groups: Sequence[Group], jobs: Sequence[Job], language: str, now_ms: Millis
) -> int:
    """Add limits with runs that have their slots or wait; return the id of the shared one."""
    database, interface = NAMES.get(language, NAMES["en"])
    groups[2].max_running = 8
    jobs[7].max_running = 1
    shared = Limit(kind=LimitKind.NAMED.value, name=database, slots=3)
    own = Limit(kind=LimitKind.JOB.value, name=str(jobs[7].id))
    free = Limit(kind=LimitKind.NAMED.value, name=interface, slots=10, group_id=groups[0].id)
    session.add_all([shared, own, free])
    session.flush()
    for index, weight, priority in ((3, 2, 5), (8, 1, 7), (1, 1, 5)):
        jobs[index].limits = json.dumps([{"limit": database, "weight": weight}])
        jobs[index].priority = priority
        session.add(LimitUse(job_id=jobs[index].id, limit_id=shared.id, weight=weight))
    holders = [_run(session, jobs[3], now_ms - 7 * MINUTE_MS), _run(session, jobs[1], now_ms - 3 * MINUTE_MS)]
    _held(session, jobs[7], now_ms - 26 * MINUTE_MS)
    full = Wait(shared.id, WaitReason.FULL, 3, 3, tuple(holders))
    _waiting(session, jobs[8], full, now_ms - 2 * MINUTE_MS, place=now_ms - 22 * MINUTE_MS)
    _waiting(session, jobs[1], full, now_ms - 90 * SECOND_MS, place=now_ms - 90 * SECOND_MS)
    behind = Wait(shared.id, WaitReason.BEHIND, 3, 3)
    _waiting(session, jobs[3], behind, now_ms - 40 * SECOND_MS, place=now_ms - 40 * SECOND_MS)
    taken = Wait(own.id, WaitReason.FULL, 1, 1, tuple(_unresolved(session, jobs[7])))
    _waiting(session, jobs[7], taken, now_ms - 25 * MINUTE_MS, place=now_ms - 25 * MINUTE_MS)
    return shared.id


def _run(session: Session, job: Job, at_ms: Millis) -> int:
    log = JobLog(
        job_id=job.id,
        job_group=job.job_group,
        executor_handler=job.executor_handler,
        executor_address="http://10.0.3.21:9999",
        trigger_time=at_ms,
        trigger_code=TriggerCode.ACCEPTED,
        handle_code=HandleCode.NONE,
        trigger_type="CRON",
        fire_time=at_ms,
    )
    session.add(log)
    session.flush()
    session.add(_fire(job, at_ms, log.id, FireState.ACCEPTED))
    return log.id


def _held(session: Session, job: Job, at_ms: Millis) -> None:
    log_id = _run(session, job, at_ms)
    log = session.get_one(JobLog, log_id)
    log.trigger_code, log.trigger_msg = TriggerCode.UNRESOLVED, "Result: the executor has disappeared"
    session.flush()
    fire = session.scalars(select(Fire).where(Fire.log_id == log_id)).one()
    fire.state = FireState.HELD.value


def _unresolved(session: Session, job: Job) -> Sequence[int]:
    held = select(Fire.log_id).where(Fire.job_id == job.id, Fire.state == FireState.HELD)
    return [log_id for log_id in session.scalars(held) if log_id is not None]


def _waiting(session: Session, job: Job, wait: Wait, due_ms: Millis, *, place: Millis) -> None:
    fire = _fire(job, due_ms, None, FireState.WAITING)
    fire.deadline_ms, fire.lease_until, fire.admitted_ms, fire.waits_for = place, NO_END, 0, wait.text
    session.add(fire)


def _fire(job: Job, due_ms: Millis, log_id: int | None, state: FireState) -> Fire:
    return Fire(
        job_id=job.id,
        fire_key=f"cron:{job.id}:{due_ms}",
        due_time=due_ms,
        trigger_type="CRON",
        state=state.value,
        log_id=log_id,
        admitted_ms=due_ms,
        lease_until=NO_END,
    )
