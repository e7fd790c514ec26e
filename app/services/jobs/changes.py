"""Changes of single members of a job, by their names in the API; the others keep their values."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock
from app.domain.access.permissions import Actor, Right
from app.domain.jobs.members import draft_values, read_members
from app.errors import InvalidInput
from app.models.job import Job
from app.services.jobs import jobs
from app.services.jobs.rules import JobDraft
from app.services.jobs.tags import tags_of
from app.services.rounds import keeping
from app.store.base import locks
from app.store.jobs import listing as job_lists

ENABLED = "enabled"
RUN_MODE = "run_mode"


def draft_of(members: Mapping[str, Any], *, readable_by_java: bool) -> JobDraft:
    """Return the draft with these members; raises InvalidInput for unreadable instants."""
    return JobDraft(**draft_values(members), readable_by_java=readable_by_java)


def hold_job(
    session: Session, job_id: int, *, gets_children: bool = False, runs_after: str | None = None
) -> None:
    """Lock a job that is about to be changed, in the order of ``update_job``.

    ``runs_after``: JSON text of what it is to run after.
    """
    job = None if gets_children else job_lists.find_job(session, job_id)
    has_children = gets_children or (job is not None and bool(job.child_jobid))
    keeping.hold_links(session, job_id, runs_after, has_children=has_children)
    locks.lock_jobs(session, [job_id])


def change_job(
    session: Session,
    job_id: int,
    new_values: Mapping[str, Any],
    *,
    actor: Actor,
    clock: Clock,
    readable_by_java: bool = False,
) -> None:
    """Give a job these members; ``enabled`` switches its schedule on or off. Raises InvalidInput.

    Needs the right to edit the job, and to operate it for ``enabled``.

    ``readable_by_java``: refuse a schedule that a Java admin on the same database cannot read.
    """
    hold_job(
        session,
        job_id,
        gets_children=bool(new_values.get("children")),
        runs_after=json.dumps(new_values.get("runs_after")),
    )
    members = {name: value for name, value in new_values.items() if name != ENABLED}
    job = jobs.get_job(session, job_id, actor=actor, right=Right.EDIT)
    if new_values.get(ENABLED) is False:
        jobs.stop_job(session, job_id, actor=actor, clock=clock)
    present = read_members(job, tags_of(session, job_id))
    _check_run_mode(job, members)
    if any(present[name] != value for name, value in members.items()):
        draft = draft_of(present | members, readable_by_java=readable_by_java)
        jobs.update_job(session, job_id, draft, actor=actor, clock=clock)
    if new_values.get(ENABLED):
        jobs.start_job(session, job_id, actor=actor, clock=clock)


def _check_run_mode(job: Job, members: Mapping[str, Any]) -> None:
    if members.get(RUN_MODE, job.glue_type) != job.glue_type:
        raise InvalidInput(RUN_MODE, f"stays {job.glue_type}; add another job for another run mode")
