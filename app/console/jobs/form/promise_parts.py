"""Parts of the job form about promises: what holds by its executor, and what its last runs suggest."""

from collections.abc import Iterable
from dataclasses import dataclass

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.form.forms import JobForm
from app.console.ui.forms.promise_fields import promises_in
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.promises.promise import Escalation, Promise, group_defaults, read_escalation
from app.models.group import Group
from app.services.jobs import jobs
from app.services.promises.suggestions import find_suggestions
from app.store.executors import groups as group_store

blueprint = Blueprint("promise_parts", __name__, url_prefix="/jobinfo")
POLICY = {
    "defaults": Access.LOGIN,
    "suggestions": Access.EDIT,
}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for the job by its executor group."""

    title: str
    promises: list[Promise]
    escalation: Escalation | None


@blueprint.get("/promise-defaults")
def defaults() -> ResponseReturnValue:
    """Return what holds by the executor in the form while it is edited."""
    form = JobForm(request.args)
    group_id = form.job_group.data or 0
    groups: Iterable[Group] = ()
    if current_actor().may(group_id, Right.VIEW):
        with read_scope() as session:
            groups = group_store.find_groups(session, [group_id]).values()
    return render_template("jobs/_promise_defaults.html", from_group=defaults_of(groups, form))


@blueprint.get("/<int(max=2147483647):job_id>/promise-suggestions")
def suggestions(job_id: int) -> ResponseReturnValue:
    """Return what the last runs of a job suggest."""
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor(), right=Right.EDIT)
        rows = find_suggestions(session, job, now_ms=now_ms())
    return render_template("jobs/_promise_suggestions.html", suggestions=rows)


def defaults_of(groups: Iterable[Group], form: JobForm) -> Defaults | None:
    """Return what holds by the chosen group, besides the job's own; None: nothing does."""
    group = next((group for group in groups if group.id == form.job_group.data), None)
    if group is None:
        return None
    promises = group_defaults(promises_in(form), group.promises, form.schedule_type.data or "")
    escalation = None if form.escalation_channel.data else read_escalation(group.escalation)
    return Defaults(group.title, promises, escalation) if promises or escalation else None
