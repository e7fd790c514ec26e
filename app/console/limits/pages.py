"""Pages of limits: the list, and the page of one: its runs, those that wait, the jobs that share it."""

from collections.abc import Sequence

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session
from werkzeug.utils import redirect

from app.console.ui.limits.waiting_rows import waiting_rows
from app.console.ui.limits.words import limit_address
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.enums import LimitKind
from app.domain.limits.rules import WITHOUT_JAVA
from app.services.executors import groups
from app.services.jobs import jobs
from app.services.limits import limits, usage
from app.services.limits.usage import LimitUsage
from app.services.runs.waiting import WaitFilter

blueprint = Blueprint("limits", __name__)
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
    "of_job": Access.VIEW,
    "of_group": Access.VIEW,
}


@blueprint.get("/limits")
def index() -> ResponseReturnValue:
    """List the named limits, others that runs wait for, and the first runs that wait."""
    actor = current_actor()
    with read_scope() as session:
        rows = usage.list_usage(session, actor=actor)
        waiting = waiting_rows(session, actor=actor, criteria=WaitFilter(is_limited=True))
        titles = group_titles(session, actor)
    return render_template(
        "limits/index.html",
        rows=[(row, limit_address(row.kind, row.of_id), may_change(actor, row)) for row in rows],
        waiting=waiting,
        titles=titles,
        may_add=actor.has_anywhere(Right.EDIT),
        hint=translate(WITHOUT_JAVA) if settings().shared_with_java else "",
    )


@blueprint.get("/limits/<int(max=2147483647):limit_id>")
def show(limit_id: int) -> ResponseReturnValue:
    """Show a named limit; one of a job or executor has a page below that."""
    actor = current_actor()
    with read_scope() as session:
        limit = usage.get_usage(session, limit_id, actor=actor)
        if limit.kind is not LimitKind.NAMED:
            return redirect(limit_address(limit.kind, limit.of_id))
        return _page(session, limit, actor)


@blueprint.get("/limits/job/<int(max=2147483647):job_id>")
def of_job(job_id: int) -> ResponseReturnValue:
    """Show the own limit of a job."""
    actor = current_actor()
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        return _page(session, usage.usage_of_job(session, job), actor)


@blueprint.get("/limits/executor/<int(max=2147483647):group_id>")
def of_group(group_id: int) -> ResponseReturnValue:
    """Show the own limit of an executor."""
    actor = current_actor()
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=actor)
        return _page(session, usage.usage_of_group(session, group), actor)


def may_change(actor: Actor, limit: LimitUsage) -> bool:
    """Return whether an actor may change a named limit."""
    return limit.kind is LimitKind.NAMED and limits.may_change(actor, limit.group_id)


def group_titles(session: Session, actor: Actor) -> dict[int, str]:
    """Return the titles of the executors that an actor may see."""
    return {group.id: group.title for group in groups.visible_groups(session, actor)}


def _page(session: Session, limit: LimitUsage, actor: Actor) -> str:
    holders = usage.list_holders(session, limit, actor=actor)
    waiting = None
    if limit.row_id:
        waiting = waiting_rows(session, actor=actor, criteria=WaitFilter(limit_id=limit.row_id))
    return render_template(
        "limits/show.html",
        limit=limit,
        holders=holders,
        waiting=waiting,
        jobs=usage.list_jobs(session, limit, actor=actor),
        jobs_max=usage.JOBS_MAX,
        titles=group_titles(session, actor),
        may_change=may_change(actor, limit),
        operable=_operable(actor, [row.group_id for row in holders.rows]),
    )


def _operable(actor: Actor, group_ids: Sequence[int]) -> frozenset[int]:
    """Return those of the groups whose runs an actor may operate."""
    return frozenset(group_id for group_id in group_ids if actor.may(group_id, Right.OPERATE))
