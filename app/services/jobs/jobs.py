"""Job operations of users and scripts. Each loads the job first and checks the right on *its* group.

Stop, edit and delete take effect at their commit (docs/reference/pipeline.md, section 9): the job's row is
locked, its unsent fires are deleted, and those already due are recorded as skipped. These functions therefore
take a clock, and read it when they hold their locks.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.engine import transact
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import EndReason, GlueType, ScheduleType, TriggerStatus
from app.domain.limits.rules import check_moved
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.pipeline.spans import keep_spans
from app.services.auditing import audit
from app.services.calendars.scopes import hold_scopes, keep_scopes
from app.services.jobs import tags as job_tags
from app.services.jobs import versions
from app.services.jobs.job_list import (
    MISSING,
    get_job,
    list_jobs,
    list_jobs_of_group,
    list_newest,
    list_rows,
)
from app.services.jobs.lookup import StoredJobLookup
from app.services.jobs.replan import PLANNED_BY, next_time_of, set_next_time, void_job, withdraw_unsent
from app.services.jobs.rules import (
    JobDraft,
    audit_fields,
    check_draft,
    check_move,
    schedule_of,
)
from app.services.jobs.triggers import QueuedRun, check_group, trigger_job
from app.services.limits.uses import keep_uses
from app.services.rounds import keeping
from app.store.alarms import mutes
from app.store.base import locks
from app.store.base.paging import Page
from app.store.calendars import blackouts
from app.store.jobs import removal
from app.store.jobs.filtering import JobFilter
from app.store.promises.clearing import withdraw_of_jobs

__all__ = [
    "MISSING",
    "JobDraft",
    "JobFilter",
    "Page",
    "QueuedRun",
    "check_group",
    "get_job",
    "list_jobs",
    "list_jobs_of_group",
    "list_newest",
    "list_rows",
    "schedule_of",
    "trigger_job",
]


def add_job(session: Session, draft: JobDraft, *, actor: Actor, clock: Clock, start: bool = False) -> int:
    """Store a new job and return its id. ``start`` switches its schedule on in the same transaction."""
    if draft.runs_after:
        keeping.hold_links(session, 0, draft.runs_after, has_children=False)
    has_scopes = bool(draft.tags) and hold_scopes(session, now_ms=clock())
    columns = check_draft(StoredJobLookup(session, actor), draft, actor=actor, now_ms=clock())
    now_ms = clock()
    if draft.glue_type != GlueType.BEAN and draft.glue_source.strip():
        require_right(actor, draft.job_group, Right.GLUE, missing=MISSING)
    job = Job(**columns, add_time=now_ms, update_time=now_ms, glue_updatetime=now_ms)
    job.trigger_status = int(TriggerStatus.STOPPED)
    job.trigger_last_time = job.trigger_next_time = job.last_fire_ms = 0
    if start:
        require_right(actor, draft.job_group, Right.OPERATE, missing=MISSING)
        _switch_on(session, job, now_ms)
    session.add(job)
    session.flush()
    if job.limits:
        keep_uses(session, [job.id])
    if job.runs_after:
        keeping.keep_edges(session, {job.id: None}, now_ms=now_ms)
    keep_spans(session, [job.id], now_ms=now_ms)
    tags = job_tags.set_tags(session, job.id, draft.tags)
    if has_scopes:
        keep_scopes(session, [job.id], clock=clock)
    versions.keep(session, {job.id: None}, actor=actor, now_ms=now_ms)
    _record(session, "job.add", job, actor, now_ms, {**audit_fields(columns), **tags, "started": start})
    return job.id


def update_job(session: Session, job_id: int, draft: JobDraft, *, actor: Actor, clock: Clock) -> None:
    """Change a job; its run mode, source and switch stay. A new schedule takes effect at the commit."""
    has_scopes = hold_scopes(session, now_ms=clock())
    keeping.hold_links(session, job_id, draft.runs_after, has_children=bool(draft.child_jobid.strip()))
    job = _lock_job(session, job_id, actor, Right.EDIT)
    columns = check_draft(StoredJobLookup(session, actor), draft, actor=actor, job=job, now_ms=clock())
    former = versions.read_present(session, [job.id])
    before = {name: getattr(job, name) for name in columns}
    changes = audit.difference(before, columns)
    is_replan = any(name in changes for name in PLANNED_BY)
    void_result = void_job(session, job, reason="edited", clock=clock) if is_replan else None
    now_ms = void_result.now_ms if void_result is not None else clock()
    if "job_group" in changes:
        mutes.split_off(session, job.id, job.job_group, now_ms=now_ms)
    for name, value in columns.items():
        setattr(job, name, value)
    job.update_time = now_ms
    if void_result is not None and job.trigger_status == TriggerStatus.RUNNING:
        set_next_time(session, job, void_result)
    if is_replan or "job_group" in changes:
        keep_spans(session, [job.id], now_ms=now_ms)
    session.flush()
    if "limits" in changes:
        keep_uses(session, [job.id])
    if "runs_after" in changes:
        keeping.keep_edges(session, {job.id: before["runs_after"]}, now_ms=now_ms)
    changes |= job_tags.set_tags(session, job.id, draft.tags)
    if has_scopes:
        keep_scopes(session, [job.id], new_job_ids=[job.id] if "job_group" in changes else (), clock=clock)
    versions.keep(session, former, actor=actor, now_ms=now_ms)
    _record(session, "job.update", job, actor, now_ms, audit_fields(changes))


def move_job(session: Session, job_id: int, group_id: int, *, actor: Actor, clock: Clock) -> None:
    """Move a job to another executor group; its runs so far stay with the old one."""
    has_scopes = hold_scopes(session, now_ms=clock())
    job = _lock_job(session, job_id, actor, Right.EDIT)
    lookup = StoredJobLookup(session, actor)
    check_move(lookup, job, group_id, actor)
    if job.job_group == group_id:
        return
    check_moved(job.limits, group_id, lookup.find_limits)
    former = versions.read_present(session, [job.id])
    changes, now_ms = {"job_group": [job.job_group, group_id]}, clock()
    mutes.split_off(session, job.id, job.job_group, now_ms=now_ms)
    job.job_group, job.update_time = group_id, now_ms
    keep_spans(session, [job.id], now_ms=now_ms)
    if has_scopes:
        keep_scopes(session, [job.id], new_job_ids=[job.id], clock=clock)
    versions.keep(session, former, actor=actor, now_ms=now_ms)
    _record(session, "job.update", job, actor, now_ms, changes)


def change_tag(session: Session, job_id: int, tag: str, *, has_tag: bool, actor: Actor, clock: Clock) -> None:
    """Add a tag to a job (``has_tag``) or remove it; does nothing if that is already so."""
    has_scopes = hold_scopes(session, now_ms=clock())
    job = _lock_job(session, job_id, actor, Right.EDIT)
    former = versions.read_present(session, [job.id])
    changes = job_tags.set_tags(session, job.id, job_tags.with_tag(session, job.id, tag, is_present=has_tag))
    if changes:
        now_ms = job.update_time = clock()
        if has_scopes:
            keep_scopes(session, [job.id], clock=clock)
        versions.keep(session, former, actor=actor, now_ms=now_ms)
        _record(session, "job.update", job, actor, now_ms, changes)


def remove_job(session: Session, job_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Delete a job with its fires, runs and versions; runs in progress continue. Raises NotFound."""
    remove_jobs(session, [job_id], actor=actor, now_ms=now_ms)


def remove_jobs(session: Session, job_ids: Collection[int], *, actor: Actor, now_ms: Millis) -> None:
    """Delete jobs as ``remove_job`` does, in as many statements as for one."""
    predecessors = keeping.hold_for_removal(session, job_ids)
    rows = locks.lock_jobs(session, job_ids)
    if len(rows) < len(set(job_ids)):
        raise NotFound(MISSING)
    for job in rows:
        require_right(actor, job.job_group, Right.EDIT, missing=MISSING)
    ids = [job.id for job in rows]
    withdraw_unsent(session, ids, clock=lambda: now_ms)
    removal.delete_jobs(session, ids)
    keeping.forget_jobs(session, ids, predecessors, now_ms=now_ms)
    withdraw_of_jobs(session, ids, now_ms=now_ms)
    blackouts.end_of_jobs(session, ids, now_ms=now_ms)
    for job in rows:
        changes = {"job_desc": job.job_desc, "job_group": job.job_group}
        _record(session, "job.remove", job, actor, now_ms, changes)
        session.expunge(job)
    keep_spans(session, ids, now_ms=now_ms, reason=EndReason.DELETED)


def stop_before_removal(session: Session, job_id: int, *, actor: Actor, clock: Clock) -> bool:
    """Switch off a job that is about to be deleted, so that it gets no new runs; False where it is off."""
    job = _lock_job(session, job_id, actor, Right.EDIT)
    if job.trigger_status == TriggerStatus.STOPPED:
        return False
    _switch_off(session, job, actor, clock)
    return True


def clear_before_removal(job_id: int, *, actor: Actor, clock: Clock) -> None:
    """Switch off a job that is about to be deleted and delete most of its log rows, in short transactions."""
    transact(partial(stop_before_removal, job_id=job_id, actor=actor, clock=clock))
    while transact(partial(removal.delete_logs_batch, job_ids=[job_id])) == removal.DELETE_BATCH:
        pass


def start_job(session: Session, job_id: int, *, actor: Actor, clock: Clock) -> None:
    """Switch a schedule on, from its first unfired instant after now. Does nothing if it is on already."""
    job = _lock_job(session, job_id, actor, Right.OPERATE)
    if job.trigger_status == TriggerStatus.RUNNING:
        return
    now_ms = clock()
    _switch_on(session, job, now_ms)
    job.update_time = now_ms
    keep_spans(session, [job.id], now_ms=now_ms)
    _record(session, "job.start", job, actor, now_ms, {"trigger_next_time": job.trigger_next_time})


def stop_job(session: Session, job_id: int, *, actor: Actor, clock: Clock) -> None:
    """Switch a schedule off and withdraw its unsent fires."""
    _switch_off(session, _lock_job(session, job_id, actor, Right.OPERATE), actor, clock)


def _lock_job(session: Session, job_id: int, actor: Actor, right: Right) -> Job:
    job = next(iter(locks.lock_jobs(session, [job_id])), None)
    if job is None:
        raise NotFound(MISSING)
    require_right(actor, job.job_group, right, missing=MISSING)
    return job


def _switch_on(session: Session, job: Job, now_ms: Millis) -> None:
    if job.schedule_type == ScheduleType.NONE:
        raise InvalidInput("scheduleType", N_("A job without a schedule cannot be switched on"))
    job.trigger_next_time = next_time_of(session, job, now_ms)
    job.trigger_status, job.trigger_last_time = int(TriggerStatus.RUNNING), 0


def _switch_off(session: Session, job: Job, actor: Actor, clock: Clock) -> None:
    void_result = void_job(session, job, reason="stopped", clock=clock)
    if job.trigger_status == TriggerStatus.STOPPED and not void_result.withdrawn:
        return
    job.trigger_status, job.trigger_last_time, job.trigger_next_time = int(TriggerStatus.STOPPED), 0, 0
    job.update_time = void_result.now_ms
    keep_spans(session, [job.id], now_ms=void_result.now_ms)
    _record(session, "job.stop", job, actor, void_result.now_ms, {"withdrawn": void_result.withdrawn})


def _record(
    session: Session, action: str, job: Job, actor: Actor, now_ms: Millis, changes: dict[str, Any]
) -> None:
    audit.record(session, action, actor=actor, now_ms=now_ms, target=("job", job.id), changes=changes)
