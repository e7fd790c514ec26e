"""Search field of the lists of incidents and promises: filters that can be typed, and a job by its name."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.console.ui.lists.job_search import job_field, with_job
from app.console.ui.lists.listing import whole_number
from app.console.ui.lists.search import Search, SearchField, executor_field, read_terms
from app.domain.access.permissions import Actor
from app.models.group import Group


def read_list_search(
    session: Session, text: str, groups: Sequence[Group], fields: Sequence[SearchField], *, actor: Actor
) -> Search:
    """Return what a text means to a reader who sees these groups; ``fields``: besides executor and job."""
    search = read_terms(text, (executor_field(groups), job_field(), *fields))
    return with_job(session, search, actor=actor)


def requested_group(groups: Sequence[Group]) -> int:
    """Return the requested group, if the user may see it; else 0."""
    group_id = whole_number("jobGroup", 0)
    return group_id if any(group.id == group_id for group in groups) else 0
