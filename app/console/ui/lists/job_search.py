"""Job in the search field of a list: ``job:`` and words without a filter, found by its number or its name."""

from sqlalchemy.orm import Session

from app.console.ui.lists.listing import address_with
from app.console.ui.lists.search import Changes, Hint, Search, SearchField, text_field
from app.console.web.language import _
from app.domain.access.permissions import Actor, Right
from app.domain.lists.search_text import searched_words
from app.services.jobs import choices
from app.store.base.paging import to_id

#: most jobs that a hint offers
OFFERED_MAX = 8
#: what a job is called, until it has been looked up
JOB_NAME = "job"


def job_field() -> SearchField:
    """Return the filter by job for ``with_job``."""
    return text_field(JOB_NAME, "job", _("Job"))


def with_job(session: Session, search: Search, *, actor: Actor) -> Search:
    """Return a search whose words and ``job:`` have become the filter by that job."""
    parameters, hints = dict(search.parameters), list(search.hints)
    name = " ".join([parameters.pop(JOB_NAME, None) or "", *searched_words(search.text)]).strip()
    if name:
        result = find_job(session, name.removeprefix("#"), parameters.get("jobGroup") or "", actor=actor)
        if isinstance(result, Hint):
            hints.append(result)
        else:
            parameters.update(result)
    return Search(parameters, "", hints)


def find_job(session: Session, name: str, group_id: str, *, actor: Actor) -> Changes | Hint:
    """Return the filter for the job with this id or name, or the only one that it matches.

    A job has one executor, so a filter by another one goes.
    """
    if job_id := to_id(name):
        return {"jobId": str(job_id), "jobGroup": None}
    offer = choices.offer_jobs(session, name, actor=actor, right=Right.VIEW, group_id=to_id(group_id))
    texts = {choice.value: choice.text.partition(" ")[2].strip().casefold() for choice in offer.choices}
    exact = [choice for choice in offer.choices if texts[choice.value] == name.casefold()]
    matches = exact or offer.choices
    if len(matches) == 1 and (exact or not offer.has_more):
        return {"jobId": matches[0].value, "jobGroup": None}
    if not matches:
        return Hint(_("No job matches “%(name)s”.", name=name))
    links = [(choice.text, _of_job(choice.value)) for choice in matches[:OFFERED_MAX]]
    if offer.has_more or len(matches) > OFFERED_MAX:
        return Hint(_("Many jobs match “%(name)s”. The newest of them:", name=name), links)
    return Hint(_("Several jobs match “%(name)s”:", name=name), links)


def _of_job(job_id: str) -> str:
    """Return the address of the list of one job."""
    return address_with(page=None, until=None, before=None, q=None, jobGroup=None, jobId=job_id)
