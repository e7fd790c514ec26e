"""Details of jobs from other tables: tags, last run, and how code manages them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.models.job import Job
from app.store.jobs import managed
from app.store.jobs import tags as job_tags
from app.store.jobs.managed import ManagedObject
from app.store.runs import recent as recent_runs
from app.store.runs.recent import Run


@dataclass(frozen=True, slots=True)
class JobDetails:
    """A job with its details."""

    job: Job
    tags: tuple[str, ...]
    #: newest run in a group the actor may see; None: none
    last_run: Run | None
    #: None: no code manages the job
    managed: ManagedObject | None


def details_of(session: Session, jobs: Sequence[Job], *, actor: Actor) -> list[JobDetails]:
    """Return the jobs with their details; the number of queries does not depend on theirs."""
    ids = [job.id for job in jobs]
    tags = job_tags.find_tags(session, ids)
    runs = recent_runs.find_newest_of_jobs(session, ids, group_ids=actor.group_ids(Right.VIEW), limit=1)
    owned = managed.find_of_objects(session, managed.JOB, ids)
    return [
        JobDetails(job, tags.get(job.id, ()), next(iter(runs.get(job.id, ())), None), owned.get(job.id))
        for job in jobs
    ]
