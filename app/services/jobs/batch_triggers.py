"""Batch triggers: many runs due now, on any instance of their groups, queued in one transaction."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.runs.trigger_keys import Trigger, new_trigger
from app.errors import XxlJobError
from app.services.auditing import audit
from app.services.jobs.jobs import QueuedRun, check_group, check_param
from app.services.jobs.rules import PARAM_MAX
from app.store.base import locks
from app.store.fires import queue as fires
from app.store.jobs import listing as job_lists


class BatchEntry(NamedTuple):
    """A run to queue."""

    job_id: int
    #: None: the job's own
    executor_param: str | None
    #: id of the request
    request: str


def trigger_jobs(
    session: Session, entries: Sequence[BatchEntry], *, actor: Actor, now_ms: Millis
) -> list[QueuedRun | XxlJobError]:
    """Queue runs as ``jobs.trigger_job`` does, in as many statements as it takes for one.

    A refused run leaves the others alone: its error stands in its place.
    """
    group_ids = locks.lock_groups_of(session, {entry.job_id for entry in entries})
    long = {entry.job_id for entry in entries if len(entry.executor_param or "") > PARAM_MAX}
    param_by_job = job_lists.find_params(session, long) if long else {}
    results: list[QueuedRun | XxlJobError] = []
    runs: list[tuple[Trigger, str | None, str]] = []
    for job_id, param, request in entries:
        try:
            group_id = check_group(group_ids.get(job_id), actor)
            check_param(session, param or "", partial(param_by_job.get, job_id))
        except XxlJobError as error:
            results.append(error)
            continue
        trigger = new_trigger(job_id, now_ms)
        runs.append((trigger, param, request))
        results.append(QueuedRun(trigger, group_id))
    fires.insert_batch(session, runs)
    audit_entries = [
        audit.Entry("job.trigger", ("job", trigger.job_id), {"executor_param": param, "address_list": None})
        for trigger, param, _ in runs
    ]
    audit.record_many(session, audit_entries, actor=actor, now_ms=now_ms)
    return results
