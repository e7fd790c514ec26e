"""Search field of the lists of incidents and promises: filters that can be typed, and a job by its name."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.console.ui.lists.job_search import find_job
from app.console.ui.lists.listing import whole_number
from app.console.ui.lists.search import Hint, Search, SearchField, executor_field, read_terms, text_field
from app.console.web.language import _
from app.domain.access.permissions import Actor
from app.domain.lists.search_text import searched_words
from app.models.group import Group

#: what a job is called, until it has been looked up
JOB_NAME = "job"


def read_list_search(
    session: Session, text: str, groups: Sequence[Group], fields: Sequence[SearchField], *, actor: Actor
) -> Search:
    """Return what a text means to a reader who sees these groups; ``fields``: besides executor and job."""
    typed = (executor_field(groups), text_field(JOB_NAME, "job", _("Job")), *fields)
    search = read_terms(text, typed)
    parameters, hints = dict(search.parameters), list(search.hints)
    name = " ".join([parameters.pop(JOB_NAME, None) or "", *searched_words(text)]).strip()
    if name:
        result = find_job(session, name.removeprefix("#"), parameters.get("jobGroup") or "", actor=actor)
        if isinstance(result, Hint):
            hints.append(result)
        else:
            parameters.update(result)
    return Search(parameters, "", hints)


def requested_group(groups: Sequence[Group]) -> int:
    """Return the requested group, if the user may see it; else 0."""
    group_id = whole_number("jobGroup", 0)
    return group_id if any(group.id == group_id for group in groups) else 0
