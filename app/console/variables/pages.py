"""Pages of variables and secrets: the list, and the page of one with its versions and jobs.

No page shows the value of a secret.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import address_with, chips, fetch_requested, whole_number
from app.console.ui.notices import Subject, done, way_back
from app.console.variables.list_search import read_variable_search
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.domain.jobs.variables import INSTALLATION, placeholder
from app.models.group import Group
from app.models.variable import Variable
from app.services.executors import groups
from app.services.variables import variables
from app.store.variables.variables import VariableFilter

blueprint = Blueprint("variables", __name__)
POLICY = {
    "index": Access.VIEW,
    "show": Access.VIEW,
    "remove": Access.EDIT,
}
#: value of the filter by kind -> whether it is of secrets
KINDS = {"variable": False, "secret": True}
#: longest name searched for
SEARCHED_MAX = 64


@blueprint.get("/variables")
def index() -> ResponseReturnValue:
    """List variables and secrets; a search text becomes parameters."""
    actor, kind = current_actor(), request.args.get("kind", "")
    text, group_id = request.args.get("name", "").strip()[:SEARCHED_MAX], whole_number("group", -1)
    criteria = VariableFilter(text, group_id=group_id if group_id >= 0 else None, is_secret=KINDS.get(kind))
    with read_scope() as session:
        visible = groups.visible_groups(session, actor)
        search = read_variable_search(request.args.get("q", ""), visible)
        if search.parameters and not search.hints:
            return redirect(address_with(page=None, q=None, **search.parameters))
        page, paging = fetch_requested(partial(variables.list_page, session, criteria, actor=actor))
    owners = owner_names(visible)
    active = chips(
        [
            ("kind", _("Kind"), {"variable": _("Variables"), "secret": _("Secrets")}.get(kind, "")),
            ("group", _("Executor"), owners.get(group_id, str(group_id)) if group_id >= 0 else ""),
            ("name", _("Name"), text),
        ]
    )
    return render_template(
        "variables/index.html",
        rows=[(row, variables.may_change(actor, row.group_id)) for row in page.rows],
        filter=criteria,
        kind=kind if kind in KINDS else "",
        active=active,
        search=search,
        paging=paging,
        groups=visible,
        owners=owners,
        may_add=actor.has_anywhere(Right.EDIT),
    )


@blueprint.get("/variables/<int(max=2147483647):variable_id>")
def show(variable_id: int) -> ResponseReturnValue:
    """Show a variable or secret, its former versions and the jobs that use it."""
    actor = current_actor()
    with read_scope() as session:
        variable = variables.get_variable(session, variable_id, actor=actor)
        versions = variables.list_versions(session, variable)
        jobs = variables.list_using_jobs(session, variable, actor=actor)
        visible = groups.visible_groups(session, actor)
    owners = owner_names(visible)
    return render_template(
        "variables/show.html",
        variable=variable,
        owners=owners,
        allowed=allowed_names(variable, actor, owners),
        placeholder=placeholder(variable.name, is_secret=variable.is_secret),
        versions=versions,
        jobs=jobs,
        jobs_max=variables.JOBS_LISTED,
        may_change=variables.may_change(actor, variable.group_id),
    )


@blueprint.route("/variables/<int(max=2147483647):variable_id>/delete", methods=["GET", "POST"])
def remove(variable_id: int) -> ResponseReturnValue:
    """Delete a variable or secret."""
    actor = current_actor()
    with read_scope() as session:
        variable = variables.get_variable(session, variable_id, actor=actor, right=Right.EDIT)
        used_by = len(variables.list_using_jobs(session, variable, actor=actor))
    if request.method == "POST":
        with session_scope() as session:
            variables.remove_variable(session, variable_id, actor=actor, now_ms=now_ms())
        return done("removed", url_for("variables.index"), of=subject_of(variable))
    consequences = [_("Jobs whose parameter names it are not started until it exists again.")]
    if used_by:
        consequences.append(_("Jobs that name it now: %(n)s.", n=used_by))
    heading = _("Delete the secret?") if variable.is_secret else _("Delete the variable?")
    question = Question(heading, variable.name, consequences, _("Delete"), "danger", "trash")
    return confirm_page(question, back=way_back("variables.index"))


def subject_of(variable: Variable) -> Subject:
    """Return what a notice says of a variable or secret."""
    return Subject("secret" if variable.is_secret else "variable", variable.id, variable.name)


def owner_names(visible: Sequence[Group]) -> dict[int, str]:
    """Return group id -> title, and the word for the installation."""
    return {INSTALLATION: _("Installation")} | {group.id: group.title for group in visible}


def allowed_names(variable: Variable, actor: Actor, owners: Mapping[int, str]) -> list[str]:
    """Return the titles of the groups that may use a secret of the installation."""
    return [owners.get(group_id, str(group_id)) for group_id in variables.visible_ids(variable, actor)]
