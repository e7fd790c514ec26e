"""Job operations of users and scripts. Each loads the job first and checks the right on *its* group.

Stop, edit and delete take effect at their commit (docs/reference/pipeline.md, section 9): the job's row is
locked, its unsent fires are deleted, and those already due are recorded as skipped. These functions therefore
take a clock, and read it when they hold their locks.
"""

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.engine import transact
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import EndReason, GlueType, ParamForm, ScheduleType, TriggerStatus
from app.domain.limits.rules import check_moved
from app.domain.runs.logical_times import chosen_logical
from app.domain.runs.trigger_keys import Trigger
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.pipeline.retries import NO_SLOT
from app.pipeline.spans import keep_spans
from app.runtime.logging import request_id
from app.services.auditing import audit
from app.services.jobs import tags as job_tags
from app.services.jobs import versions
from app.services.jobs.lookup import StoredJobLookup
from app.services.jobs.placeholders import check_run_param
from app.services.jobs.plan_limits import check_plan
from app.services.jobs.replan import PLANNED_BY, next_time_of, set_next_time, void_job, withdraw_unsent
from app.services.jobs.rules import (
    JobDraft,
    audited,
    check_draft,
    check_move,
    schedule_of,
)
from app.services.jobs.run_addresses import check_addresses
from app.services.limits.forced import forced_slot
from app.services.limits.uses import keep_uses
from app.store.alarms import mutes
from app.store.base import locks
from app.store.base.paging import Page
from app.store.fires import queue as fires
from app.store.jobs import listing as job_lists
from app.store.jobs.filtering import JobFilter
from app.store.jobs.listing import ListedJob
from app.store.promises.clearing import withdraw_of_jobs

__all__ = ["JobDraft", "JobFilter", "Page", "schedule_of"]

MISSING = N_("Job id is invalid")


class QueuedRun(NamedTuple):
    """A run that was just queued."""

    #: leads to the run
    trigger: Trigger
    group_id: int
    #: what it stands for
    logical_ms: Millis


def get_job(session: Session, job_id: int, *, actor: Actor, right: Right = Right.VIEW) -> Job:
    """Return a job on which the actor has ``right``; raises NotFound if the actor cannot see it."""
    job = job_lists.find_job(session, job_id)
    if job is None:
        raise NotFound(MISSING)
    require_right(actor, job.job_group, right, missing=MISSING)
    return job


def list_jobs(session: Session, job_filter: JobFilter, *, actor: Actor, start: int, length: int) -> Page[Job]:
    """Return a page of the jobs the actor may see, newest first unless the filter names an order."""
    return job_lists.list_jobs(
        session, job_filter, group_ids=actor.group_ids(Right.VIEW), start=start, length=length
    )


def list_rows(
    session: Session, job_filter: JobFilter, *, actor: Actor, start: int, length: int
) -> Page[ListedJob]:
    """Return a page as ``list_jobs``, with only the columns that the list shows."""
    group_ids = actor.group_ids(Right.VIEW)
    page = job_lists.list_ids(session, job_filter, group_ids=group_ids, start=start, length=length)
    row_by_id = job_lists.find_listed(session, page.rows)
    return Page([row_by_id[job_id] for job_id in page.rows if job_id in row_by_id], page.total)


def list_newest(
    session: Session, job_filter: JobFilter, *, actor: Actor, before_id: int, limit: int
) -> list[Job]:
    """Return the newest jobs the actor may see, with ids below ``before_id`` (0: all), without their code."""
    group_ids = actor.group_ids(Right.VIEW)
    return job_lists.list_before(session, job_filter, group_ids=group_ids, before_id=before_id, limit=limit)


def list_jobs_of_group(session: Session, group_id: int, *, actor: Actor) -> list[Job]:
    """Return the jobs of a group by id; an empty list if the actor cannot see the group."""
    return job_lists.list_of_group(session, group_id) if actor.may(group_id, Right.VIEW) else []


def add_job(session: Session, draft: JobDraft, *, actor: Actor, clock: Clock, start: bool = False) -> int:
    """Store a new job and return its id. ``start`` switches its schedule on in the same transaction."""
    columns = check_draft(StoredJobLookup(session, actor), draft, actor=actor)
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
    keep_spans(session, [job.id], now_ms=now_ms)
    tags = job_tags.set_tags(session, job.id, draft.tags)
    versions.keep(session, {job.id: None}, actor=actor, now_ms=now_ms)
    _record(session, "job.add", job, actor, now_ms, {**audited(columns), **tags, "started": start})
    return job.id


def update_job(session: Session, job_id: int, draft: JobDraft, *, actor: Actor, clock: Clock) -> None:
    """Change a job; its run mode, source and switch stay. A new schedule takes effect at the commit."""
    if draft.child_jobid.strip():
        # Without this lock two concurrent saves could each see no cycle, and together create one.
        locks.take_schedule_lock(session)
    job = _lock_job(session, job_id, actor, Right.EDIT)
    columns = check_draft(StoredJobLookup(session, actor), draft, actor=actor, job=job)
    former = versions.read_present(session, [job.id])
    before = {name: getattr(job, name) for name in columns}
    changes = audit.difference(before, columns)
    replanned = any(name in changes for name in PLANNED_BY)
    void_result = void_job(session, job, reason="edited", clock=clock) if replanned else None
    now_ms = void_result.now_ms if void_result is not None else clock()
    if "job_group" in changes:
        mutes.split_off(session, job.id, job.job_group, now_ms=now_ms)
    for name, value in columns.items():
        setattr(job, name, value)
    job.update_time = now_ms
    if void_result is not None and job.trigger_status == TriggerStatus.RUNNING:
        set_next_time(session, job, void_result)
    if replanned or "job_group" in changes:
        keep_spans(session, [job.id], now_ms=now_ms)
    session.flush()
    if "limits" in changes:
        keep_uses(session, [job.id])
    changes |= job_tags.set_tags(session, job.id, draft.tags)
    versions.keep(session, former, actor=actor, now_ms=now_ms)
    _record(session, "job.update", job, actor, now_ms, audited(changes))


def move_job(session: Session, job_id: int, group_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Move a job to another executor group; its runs so far stay with the old one."""
    job = _lock_job(session, job_id, actor, Right.EDIT)
    lookup = StoredJobLookup(session, actor)
    check_move(lookup, job, group_id, actor)
    if job.job_group == group_id:
        return
    check_moved(job.limits, group_id, lookup.find_limits)
    former = versions.read_present(session, [job.id])
    changes = {"job_group": [job.job_group, group_id]}
    mutes.split_off(session, job.id, job.job_group, now_ms=now_ms)
    job.job_group, job.update_time = group_id, now_ms
    keep_spans(session, [job.id], now_ms=now_ms)
    versions.keep(session, former, actor=actor, now_ms=now_ms)
    _record(session, "job.update", job, actor, now_ms, changes)


def change_tag(
    session: Session, job_id: int, tag: str, *, has_tag: bool, actor: Actor, now_ms: Millis
) -> None:
    """Add a tag to a job (``has_tag``) or remove it; does nothing if that is already so."""
    job = _lock_job(session, job_id, actor, Right.EDIT)
    former = versions.read_present(session, [job.id])
    changes = job_tags.set_tags(session, job.id, job_tags.with_tag(session, job.id, tag, is_present=has_tag))
    if changes:
        job.update_time = now_ms
        versions.keep(session, former, actor=actor, now_ms=now_ms)
        _record(session, "job.update", job, actor, now_ms, changes)


def remove_job(session: Session, job_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Delete a job with its fires, runs and versions; runs in progress continue. Raises NotFound."""
    remove_jobs(session, [job_id], actor=actor, now_ms=now_ms)


def remove_jobs(session: Session, job_ids: Collection[int], *, actor: Actor, now_ms: Millis) -> None:
    """Delete jobs as ``remove_job`` does, in as many statements as for one."""
    removed = locks.lock_jobs(session, job_ids)
    if len(removed) < len(set(job_ids)):
        raise NotFound(MISSING)
    for job in removed:
        require_right(actor, job.job_group, Right.EDIT, missing=MISSING)
    ids = [job.id for job in removed]
    withdraw_unsent(session, ids, clock=lambda: now_ms)
    job_lists.delete_jobs(session, ids)
    withdraw_of_jobs(session, ids, now_ms=now_ms)
    for job in removed:
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
    while transact(partial(job_lists.delete_logs_batch, job_ids=[job_id])) == job_lists.DELETE_BATCH:
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


def trigger_job(
    session: Session,
    job_id: int,
    *,
    executor_param: str | None,
    address_list: str | None,
    actor: Actor,
    now_ms: Millis,
    due_ms: Millis | None = None,
    repeats: int | None = None,
    logical_ms: Millis | None = None,
    former_logical_ms: Millis | None = None,
    param_form: ParamForm = ParamForm.TEMPLATE,
    force: bool = False,
) -> QueuedRun:
    """Queue one run, due now or at ``due_ms``.

    ``executor_param`` None: the job's own; ``address_list`` empty: the addresses of the group. ``repeats`` is
    the log id of a run of this job, visible to the actor, whose checkpoint the new run gets. ``logical_ms``
    is a logical time that is given; without one ``former_logical_ms`` counts, of a run that is run again.
    ``param_form``: placeholders of a template are filled in if the job does that; ``force``: no limit counts.
    """
    group_id = check_group(locks.lock_group_of(session, job_id), actor)
    errors, addresses, start_ms, run_logical_ms = InputErrors(), None, due_ms or now_ms, now_ms
    with errors:
        check_run_param(session, job_id, group_id, executor_param or "", param_form)
    with errors:
        addresses = check_addresses(session, group_id, address_list or "", now_ms)
    with errors:
        if due_ms is not None:
            check_plan(session, job_id, due_ms, now_ms=now_ms, force=force)
    with errors:
        run_logical_ms = chosen_logical(logical_ms, former_logical_ms, due_ms=start_ms, now_ms=now_ms)
    errors.raise_all()
    trigger = fires.insert_manual(
        session,
        job_id,
        executor_param=executor_param,
        address_list=addresses,
        due_ms=start_ms,
        planned=due_ms is not None,
        request=request_id.get(),
        repeats=repeats,
        logical_ms=run_logical_ms,
        param_form=param_form,
        **(forced_slot(session, job_id, executor_param, now_ms) if force else NO_SLOT)._asdict(),
    )
    changes = _given(executor_param, addresses, due_ms=due_ms, logical_ms=logical_ms, force=force or None)
    audit.record(session, "job.trigger", actor=actor, now_ms=now_ms, target=("job", job_id), changes=changes)
    return QueuedRun(trigger, group_id, run_logical_ms)


def _given(executor_param: str | None, addresses: str | None, **given: object) -> dict[str, Any]:
    """Return what the audit of a trigger names: its parameter and addresses, and what else was given."""
    changes: dict[str, Any] = {"executor_param": executor_param, "address_list": addresses}
    return changes | {name: value for name, value in given.items() if value is not None}


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


def check_group(group_id: int | None, actor: Actor) -> int:
    """Check the right to run the jobs of a group (None: there is no such job), and return the group."""
    if group_id is None:
        raise NotFound(MISSING)
    require_right(actor, group_id, Right.OPERATE, missing=MISSING)
    return group_id


def _record(
    session: Session, action: str, job: Job, actor: Actor, now_ms: Millis, changes: dict[str, Any]
) -> None:
    audit.record(session, action, actor=actor, now_ms=now_ms, target=("job", job.id), changes=changes)
