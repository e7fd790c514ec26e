"""Batch triggers: many runs due now, on any instance of their groups, queued in one transaction."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.enums import ParamForm
from app.domain.runs.logical_times import chosen_logical, second_of
from app.domain.runs.trigger_keys import new_trigger
from app.errors import XxlJobError
from app.services.auditing import audit
from app.services.calendars.by_hand import find_refusal
from app.services.jobs.placeholders import PARAM_MAX, check_given, check_param, has_placeholders
from app.services.jobs.triggers import QueuedRun, check_group
from app.services.limits.forced_runs import keys_of_forced
from app.store.base import locks
from app.store.calendars import current_book
from app.store.fires import queue as fires
from app.store.fires.queue import BatchFire
from app.store.jobs import listing as job_lists


class BatchEntry(NamedTuple):
    """A run to queue."""

    job_id: int
    #: None: the job's own
    executor_param: str | None
    #: id of the request
    request: str
    #: logical time; None: the second of the request
    logical_ms: Millis | None = None
    param_form: ParamForm = ParamForm.TEMPLATE
    #: it waits for no limit and no blackout
    force: bool = False


def trigger_jobs(
    session: Session, entries: Sequence[BatchEntry], *, actor: Actor, now_ms: Millis
) -> list[QueuedRun | XxlJobError]:
    """Queue runs as ``trigger_job`` does, in as many statements as it takes for one.

    A refused run leaves the others alone: its error stands in its place.
    """
    group_ids = locks.lock_groups_of(session, {entry.job_id for entry in entries})
    long = {entry.job_id for entry in entries if len(entry.executor_param or "") > PARAM_MAX}
    template_ids = {entry.job_id for entry in entries if _is_filled(entry)}
    filling = job_lists.find_filling(session, template_ids) if template_ids else {}
    param_by_job = job_lists.find_params(session, long) if long else {}
    book = current_book.refresh(session)
    results: list[QueuedRun | XxlJobError] = []
    runs: list[BatchFire] = []
    for entry in entries:
        job_id, param = entry.job_id, entry.executor_param
        try:
            group_id = check_group(group_ids.get(job_id), actor)
            check_param(session, param or "", partial(param_by_job.get, job_id))
            if _is_filled(entry):
                own_texts = {job_id: filling[job_id]} if job_id in filling else {}
                check_given(session, param or "", group_id, own_texts)
            logical_ms = chosen_logical(entry.logical_ms, None, due_ms=now_ms, now_ms=now_ms)
            if not entry.force and (refusal := find_refusal(book, job_id, group_id, now_ms)) is not None:
                raise refusal
        except XxlJobError as error:
            results.append(error)
            continue
        trigger = new_trigger(job_id, now_ms)
        runs.append(
            BatchFire(
                trigger, param, entry.request, logical_ms, entry.param_form, now_ms if entry.force else 0
            )
        )
        results.append(QueuedRun(trigger, group_id, logical_ms))
    fires.insert_batch(session, _with_keys(session, runs))
    audit.record_many(session, [_entry(run) for run in runs], actor=actor, now_ms=now_ms)
    return results


def _with_keys(session: Session, runs: Sequence[BatchFire]) -> list[BatchFire]:
    """Return the fires, those that are forced with the values of `limit_key` for which they count."""
    forced_runs = [run for run in runs if run.admitted_ms]
    keys = keys_of_forced(session, [(run.trigger.job_id, run.executor_param) for run in forced_runs])
    key_of = {run.trigger: key for run, key in zip(forced_runs, keys, strict=True)}
    return [run._replace(limit_key=key_of.get(run.trigger, "")) for run in runs]


def _is_filled(entry: BatchEntry) -> bool:
    return entry.param_form is ParamForm.TEMPLATE and has_placeholders(entry.executor_param)


def _entry(run: BatchFire) -> audit.Entry:
    changes: dict[str, Any] = {"executor_param": run.executor_param, "address_list": None}
    if run.logical_ms != second_of(run.trigger.due_ms):
        changes["logical_ms"] = run.logical_ms
    if run.admitted_ms:
        changes["force"] = True
    return audit.Entry("job.trigger", ("job", run.trigger.job_id), changes)
