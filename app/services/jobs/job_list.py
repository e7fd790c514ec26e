"""Jobs as users see them: one, and lists. The right is checked on the job's own group."""

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right, require_right
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.job import Job
from app.store.base.paging import Page
from app.store.jobs import favourites
from app.store.jobs import listing as job_lists
from app.store.jobs.filtering import JobFilter
from app.store.jobs.listing import ListedJob

MISSING = N_("Job id is invalid")


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


def star_job(session: Session, job_id: int, *, is_favourite: bool, actor: Actor) -> None:
    """Add a visible job to the actor's favourites (``is_favourite``), or remove it.

    Favourites are private, and jobs that the user can no longer see are not listed.
    """
    get_job(session, job_id, actor=actor)
    change = favourites.add_favourite if is_favourite else favourites.remove_favourite
    change(session, actor.user_id, job_id)
