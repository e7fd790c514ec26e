"""Forms that add, change and delete named limits."""

from functools import partial

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.limits.forms import ALL, LimitForm
from app.console.ui.forms import stale
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import here
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope, transact
from app.domain.access.permissions import Right
from app.domain.text.fingerprints import fingerprint
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile, Conflict, InvalidInput, PermissionDenied
from app.services.executors import groups
from app.services.limits import limits, usage
from app.services.limits.limits import LimitDraft, NamedLimit
from app.store.limits import listing

blueprint = Blueprint("limit_forms", __name__)
POLICY = {
    "add": Access.EDIT,
    "edit": Access.EDIT,
    "remove": Access.EDIT,
}
NAME_TAKEN = N_("There is a limit of this name already")


@blueprint.route("/limits/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a named limit."""
    form = LimitForm(request.form, group=ALL if current_actor().is_admin else "")
    if request.method == "POST" and (limit := _save(form, None)) is not None:
        return done("added", url_for("limits.index"), of=Subject("limit", limit.id, limit.name))
    return _page(form, None)


@blueprint.route("/limits/<int(max=2147483647):limit_id>/edit", methods=["GET", "POST"])
def edit(limit_id: int) -> ResponseReturnValue:
    """Change the slots of a named limit, and which jobs may use it."""
    limit = _limit(limit_id)
    form = LimitForm(
        request.form,
        name=limit.name,
        slots=str(limit.slots),
        group=ALL if limit.group_id is None else str(limit.group_id),
        loaded=fingerprint(limits.state_of(limit)),
    )
    if request.method == "POST" and _save(form, limit) is not None:
        address = url_for("limits.show", limit_id=limit_id)
        return done("saved", address, of=Subject("limit", limit_id, limit.name))
    return _page(form, limit)


@blueprint.route("/limits/<int(max=2147483647):limit_id>/delete", methods=["GET", "POST"])
def remove(limit_id: int) -> ResponseReturnValue:
    """Delete a named limit that no job uses."""
    limit, back = _limit(limit_id), way_back("limits.index")
    if request.method == "POST":
        with session_scope() as session:
            limits.remove_limit(session, limit.name, actor=current_actor(), now_ms=now_ms())
        return done("removed", url_for("limits.index"), of=Subject("limit", limit_id, limit.name))
    consequences, first = [_("No job uses it.")], None
    if limit.users:
        consequences = [_("Jobs that use it: %(n)s. Remove it from these jobs first.", n=limit.users)]
        first = _("Show the jobs"), url_for("limits.show", limit_id=limit_id)
    question = Question(
        _("Delete the limit?"), limit.name, consequences, _("Delete"), "danger", "trash", first
    )
    return confirm_page(question, back=back)


def _limit(limit_id: int) -> NamedLimit:
    with read_scope() as session:
        name = usage.get_usage(session, limit_id, actor=current_actor()).name
        return limits.get_limit(session, name, actor=current_actor(), right=Right.EDIT)


def _save(form: LimitForm, limit: NamedLimit | None) -> NamedLimit | None:
    """Store what was entered; None with the errors in the form."""
    errors = InputErrors()
    draft = LimitDraft(form.read_slots(errors), form.read_group(errors), loaded=stale.form_fingerprint())
    name = limit.name if limit is not None else form.name.data or ""
    try:
        with errors:
            limits.check_name(name)
        errors.raise_all()
        return transact(partial(_store, name=name, draft=draft, is_new=limit is None))
    except InvalidInput as exc:
        form.refuse(exc)
    except ChangedMeanwhile as exc:
        href = url_for("limits.show", limit_id=limit.id) if limit is not None else url_for("limits.index")
        stale.refuse(form, exc, None, href)
    except Conflict as exc:
        form.refuse(InvalidInput("", exc.args[0]))
    return None


def _store(session: Session, *, name: str, draft: LimitDraft, is_new: bool) -> NamedLimit:
    if is_new and listing.find_named(session, name.strip()) is not None:
        raise InvalidInput("name", NAME_TAKEN)
    return limits.set_limit(session, name, draft, actor=current_actor(), now_ms=now_ms())


def _page(form: LimitForm, limit: NamedLimit | None) -> ResponseReturnValue:
    actor = current_actor()
    with read_scope() as session:
        visible = groups.visible_groups(session, actor)
    choices = [(str(group.id), group.title) for group in visible if actor.may(group.id, Right.EDIT)]
    if actor.is_admin:
        choices = [(ALL, _("All executors")), *choices]
    if not choices:
        raise PermissionDenied(N_("permission denied"))
    is_open = len(choices) > 1 and not form.group.data
    form.group.choices = [("", _("Choose an executor")), *choices] if is_open else choices
    cancel = url_for("limits.show", limit_id=limit.id) if limit is not None else way_back("limits.index")
    page = render_template("limits/edit.html", form=form, limit=limit, action=here(), cancel=cancel)
    return page, 400 if form.errors or form.form_errors else 200
