"""Forms that add and change variables and secrets; a secret needs the confirmation that code needs."""

from functools import partial

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.forms import stale
from app.console.ui.forms.picked_ids import picked_ids
from app.console.ui.forms.stale import LastChange
from app.console.ui.lists.listing import here
from app.console.ui.notices import Subject, done, way_back
from app.console.variables.forms import VariableForm
from app.console.variables.pages import owner_names, subject_of
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope, transact
from app.domain.access.permissions import Right
from app.domain.jobs.variables import INSTALLATION, allowed_ids
from app.domain.text.fingerprints import fingerprint
from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile, InvalidInput, PermissionDenied
from app.models.variable import Variable
from app.services.executors import groups
from app.services.jobs.choices import Choice
from app.services.variables import variables
from app.store.base.paging import to_id

blueprint = Blueprint("variable_forms", __name__)
POLICY = {
    "add": Access.EDIT,
    "edit": Access.EDIT,
}


@blueprint.route("/variables/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a variable, or with ``?kind=secret`` a secret; ``?group=`` chooses its executor."""
    is_secret = request.values.get("kind") == "secret"
    form = VariableForm(request.form, group=request.args.get("group", ""))
    status = 200
    if request.method == "POST":
        status = _confirm(form, is_secret=is_secret) or _add(form, is_secret=is_secret)
        if not status:
            subject = Subject(
                "secret" if is_secret else "variable", form.made_id, (form.name.data or "").strip()
            )
            return done("added", url_for("variables.index"), of=subject)
    return _page(form, None, is_secret=is_secret), status


@blueprint.route("/variables/<int(max=2147483647):variable_id>/edit", methods=["GET", "POST"])
def edit(variable_id: int) -> ResponseReturnValue:
    """Change a variable or secret; a secret is not shown, and an empty field keeps it."""
    with read_scope() as session:
        variable = variables.get_variable(session, variable_id, actor=current_actor(), right=Right.EDIT)
    form = VariableForm(
        request.form,
        value=variable.value,
        allowed=",".join(map(str, sorted(allowed_ids(variable.allowed)))),
        loaded=fingerprint(variables.state_of(variable)),
    )
    status = 200
    if request.method == "POST":
        status = _confirm(form, is_secret=variable.is_secret) or _change(form, variable)
        if not status:
            subject = subject_of(variable)
            return done("saved", url_for("variables.show", variable_id=variable_id), of=subject)
    return _page(form, variable, is_secret=variable.is_secret), status


def _confirm(form: VariableForm, *, is_secret: bool) -> int:
    """Confirm the login for a secret; otherwise return the status of the page."""
    status = refusal_status(form.password) if is_secret else 0
    if status:
        form.ask_again()
    return status


def _add(form: VariableForm, *, is_secret: bool) -> int:
    """Store what was entered; otherwise show the errors and return the status of the page."""
    text = form.group.data or ""
    group_id = INSTALLATION if text == str(INSTALLATION) else to_id(text)
    try:
        if not text or (text != str(INSTALLATION) and not group_id):
            raise InvalidInput("group", N_("Choose an executor"))
        draft = form.draft(
            is_secret=is_secret,
            names_groups=is_secret and group_id == INSTALLATION,
            keeps=False,
            fingerprint="",
        )
        add_it = partial(variables.add_variable, draft=draft, group_id=group_id)
        form.made_id = transact(lambda session: add_it(session, actor=current_actor(), now_ms=now_ms()))
    except InvalidInput as exc:
        form.refuse(exc)
        form.ask_again()
        return 400
    return 0


def _change(form: VariableForm, variable: Variable) -> int:
    """Save what was entered; otherwise show the errors and return the status of the page."""
    is_secret = variable.is_secret
    draft = form.draft(
        is_secret=is_secret,
        names_groups=is_secret and variable.group_id == INSTALLATION,
        keeps=True,
        fingerprint=stale.form_fingerprint(),
    )
    try:
        with session_scope() as session:
            variables.change_variable(session, variable.id, draft, actor=current_actor(), now_ms=now_ms())
    except InvalidInput as exc:
        form.refuse(exc)
        form.ask_again()
        return 400
    except ChangedMeanwhile as exc:
        last = LastChange(variable.username, variable.updated_ms)
        stale.refuse(form, exc, last, url_for("variables.show", variable_id=variable.id))
        return 400
    return 0


def _page(form: VariableForm, variable: Variable | None, *, is_secret: bool) -> str:
    actor = current_actor()
    with read_scope() as session:
        visible = groups.visible_groups(session, actor)
    owners = owner_names(visible)
    editable = [group_id for group_id in owners if variables.may_change(actor, group_id)]
    if not editable:
        raise PermissionDenied(N_("permission denied"))
    form.group.choices = [("", _("Choose an executor")), *((str(key), owners[key]) for key in editable)]
    group_choices = [
        Choice(str(group_id), owners.get(group_id, str(group_id)))
        for group_id in picked_ids(form.allowed.data)
    ]
    cancel = url_for("variables.show", variable_id=variable.id) if variable else url_for("variables.index")
    return render_template(
        "variables/edit.html",
        form=form,
        variable=variable,
        owner=owners.get(variable.group_id, str(variable.group_id)) if variable else "",
        is_secret=is_secret,
        names_groups=is_secret and (variable.group_id == INSTALLATION if variable else actor.is_admin),
        picked=group_choices,
        confirmation=confirmation_kind() if is_secret else "",
        action=here(),
        cancel=way_back("variables.index") if variable is None else cancel,
    )
