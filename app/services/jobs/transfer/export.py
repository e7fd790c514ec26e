"""Export of jobs to a file."""

from collections.abc import Iterable, Sequence

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right, require_right
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services.jobs import bulk, jobs
from app.services.jobs.jobs import JobFilter
from app.services.jobs.transfer.job_file import JOBS_MAX, job_object, write_file
from app.store.executors import groups
from app.store.jobs import scheduling as job_store
from app.store.jobs import tags as job_tags


def export_matching(session: Session, wanted: JobFilter, *, actor: Actor) -> str:
    """Return a file with all jobs of a list; raises InvalidInput if there are too many."""
    page = jobs.list_jobs(session, wanted, actor=actor, start=0, length=JOBS_MAX)
    if page.total > JOBS_MAX:
        raise InvalidInput(
            "file", N_("A file can contain at most %(limit)s jobs; narrow the filters", limit=JOBS_MAX)
        )
    return _file_of(session, page.rows, actor)


def export_ticked(session: Session, job_ids: Sequence[int], *, actor: Actor) -> str:
    """Return a file with these jobs; raises NotFound if any is missing or not visible."""
    ids = bulk.check_ids(job_ids)
    found = job_store.find_jobs(session, ids)
    for job_id in ids:
        if job_id not in found:
            raise NotFound(jobs.MISSING)
        require_right(actor, found[job_id].job_group, Right.VIEW, missing=jobs.MISSING)
    return _file_of(session, found.values(), actor)


def _file_of(session: Session, found: Iterable[Job], actor: Actor) -> str:
    """Write the jobs in an order that is the same on every installation; ids only order equal names."""
    listed = list(found)
    named = groups.find_groups(session, {job.job_group for job in listed})
    app_names = {group_id: group.app_name for group_id, group in named.items()}
    listed.sort(
        key=lambda job: (app_names.get(job.job_group, ""), job.job_desc, job.executor_handler or "", job.id)
    )
    tags = job_tags.find_tags(session, [job.id for job in listed])
    return write_file(
        job_object(
            job,
            app_names.get(job.job_group, ""),
            tags.get(job.id, ()),
            with_source=actor.may(job.job_group, Right.GLUE),
        )
        for job in listed
    )
