"""Links of a remedy: the pages that repair what kept a run from starting."""

from typing import NamedTuple

from flask import url_for

from app.console.web.current import current_actor
from app.console.web.language import _
from app.domain.access.permissions import Right
from app.domain.runs.remedies import Remedy
from app.models.group import Group
from app.models.job import Job
from app.store.jobs.scheduling import JobName


class Link(NamedTuple):
    """Button of a remedy."""

    title: str
    href: str


def remedy_links(remedy: Remedy, group: Group | None, job: Job | JobName | None) -> list[Link]:
    """Return the pages that repair what kept a run from starting; the first one is the nearest."""
    actor = current_actor()
    links = []
    if group is not None:
        page = url_for("group_page.show", group_id=group.id)
        executor = Link(_("Executor %(name)s", name=group.title), page)
        connect = Link(_("Connect an executor"), url_for("connect.show", appname=group.app_name))
        edit = Link(_("Edit the executor"), url_for("groups.edit", group_id=group.id))
        by_remedy = {
            Remedy.CONNECT: [executor, connect],
            Remedy.UNDRAIN: [executor._replace(title=_("Allow new runs"))],
            Remedy.NETWORK: [edit] if actor.is_admin else [executor],
            Remedy.TOKEN: [edit] if actor.is_admin else [executor],
            Remedy.GLUE: [connect],
            Remedy.EXECUTOR: [executor],
        }
        links = by_remedy.get(remedy, [])
    if remedy is Remedy.VARIABLES:
        links = [Link(_("Variables and secrets"), url_for("variables.index"))]
    remedies = (Remedy.JOB, Remedy.GLUE, Remedy.VARIABLES)
    if job is not None and remedy in remedies and actor.may(job.job_group, Right.EDIT):
        links = [*links, Link(_("Edit the job"), url_for("jobs.edit", job_id=job.id))]
    return links
