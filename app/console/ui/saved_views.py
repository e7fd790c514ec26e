"""Saved views: named filters of a list, shown as links above it. A view holds known filters, never a URL."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session
from wtforms import StringField

from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import here
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _, lazy_gettext, lazy_pgettext
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.domain.lists.filters import ListName, kept_filters, read_filters
from app.errors import InvalidInput
from app.models.saved_view import SavedView
from app.services.accounts import saved_views

blueprint = Blueprint("saved_views", __name__, url_prefix="/views")
POLICY = {
    "add": Access.LOGIN,
    "rename": Access.LOGIN,
    "remove": Access.LOGIN,
}

ENDPOINTS = {ListName.JOBS: "jobs.index", ListName.LOGS: "logs.index"}
TITLES = {ListName.JOBS: lazy_gettext("Jobs"), ListName.LOGS: lazy_pgettext("menu", "Runs")}
#: placeholder for the reader's name in the owner filter
ME = "{me}"


class ViewForm(ConsoleForm):
    """Name of a saved view."""

    name = StringField(lazy_gettext("Name"))


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in view."""

    list_name: ListName
    title: str
    filters: Mapping[str, str]


BUILT_IN: dict[str, BuiltIn] = {
    "failing": BuiltIn(ListName.JOBS, lazy_gettext("Failing"), {"last": "failing"}),
    "running_jobs": BuiltIn(ListName.JOBS, lazy_gettext("Running"), {"last": "running"}),
    "mine": BuiltIn(ListName.JOBS, lazy_gettext("Mine"), {"author": ME}),
    "favourites": BuiltIn(ListName.JOBS, lazy_gettext("Favourites"), {"favourites": "1"}),
    "drifted": BuiltIn(ListName.JOBS, lazy_gettext("Drifted"), {"code": "drifted"}),
    "failed": BuiltIn(ListName.LOGS, lazy_gettext("Failed today"), {"logStatus": "2", "range": "today"}),
    "not_started": BuiltIn(
        ListName.LOGS, lazy_gettext("Not started today"), {"logStatus": "7", "range": "today"}
    ),
    "running": BuiltIn(ListName.LOGS, lazy_gettext("Running now"), {"logStatus": "3", "range": "all"}),
}


@dataclass(frozen=True, slots=True)
class ViewLink:
    """A view as a link; ``current``: the list shows this view."""

    title: str
    href: str
    current: bool
    #: key of a built-in one
    key: str = ""


@dataclass(frozen=True, slots=True)
class ListViews:
    """Views above the filters of a list; ``save_href`` is empty if there is nothing to save."""

    links: list[ViewLink]
    save_href: str


@blueprint.route("/<any(jobs, logs):list_name>/new", methods=["GET", "POST"])
def add(list_name: str) -> ResponseReturnValue:
    """Save the filters of this URL under a name."""
    name, form = ListName(list_name), ViewForm(request.form)
    back = list_href(name, kept_filters(name, request.args))
    if request.method == "POST":
        try:
            with session_scope() as session:
                view_id = saved_views.add_view(
                    session, name, form.name.data or "", request.args, actor=current_actor()
                )
            return done("view_saved", back, of=Subject("view", view_id, form.name.data or ""))
        except InvalidInput as exc:
            form.refuse(exc)
    return _form_page(form, _("Save filters as a view"), back)


@blueprint.route("/<int(max=2147483647):view_id>/edit", methods=["GET", "POST"])
def rename(view_id: int) -> ResponseReturnValue:
    """Rename a view."""
    with read_scope() as session:
        view = saved_views.get_view(session, view_id, actor=current_actor())
    form = ViewForm(request.form, name=view.name)
    if request.method == "POST":
        try:
            with session_scope() as session:
                saved_views.rename_view(session, view_id, form.name.data or "", actor=current_actor())
            return done(
                "saved",
                url_for("account.show", _anchor="views"),
                of=Subject("view", view_id, form.name.data or ""),
            )
        except InvalidInput as exc:
            form.refuse(exc)
    return _form_page(form, _("Rename the view"), url_for("account.show", _anchor="views"))


@blueprint.route("/<int(max=2147483647):view_id>/delete", methods=["GET", "POST"])
def remove(view_id: int) -> ResponseReturnValue:
    """Delete a view."""
    with read_scope() as session:
        view = saved_views.get_view(session, view_id, actor=current_actor())
    if request.method == "POST":
        with session_scope() as session:
            saved_views.remove_view(session, view_id, actor=current_actor())
        return done(
            "removed", url_for("account.show", _anchor="views"), of=Subject("view", view_id, view.name)
        )
    consequences = [_("Jobs and runs are not affected. If it is your start page, the dashboard replaces it.")]
    question = Question(
        _("Delete the view?"), view.name, consequences, _("Delete"), kind="danger", glyph="trash"
    )
    return confirm_page(question, back=way_back("account.show"))


def list_href(name: ListName, filters: Mapping[str, str]) -> str:
    """Return the URL of a list with these filters."""
    values: dict[str, Any] = dict(filters)
    return url_for(ENDPOINTS[name], **values)


def built_in_filters(key: str, actor: Actor) -> dict[str, str]:
    """Return the filters of a built-in view for this reader."""
    return {name: actor.username if value == ME else value for name, value in BUILT_IN[key].filters.items()}


def view_href(view: SavedView) -> str:
    """Return the URL of a saved view."""
    name = ListName(view.list_name)
    return list_href(name, read_filters(name, view.filters))


def views_of(session: Session, name: ListName) -> ListViews:
    """Return the views of the requested list: built-in ones, then the reader's own."""
    actor, active = current_actor(), kept_filters(name, request.args)
    values: dict[str, Any] = {"list_name": name.value, **active}
    views = [
        (key, str(built_in.title), built_in_filters(key, actor))
        for key, built_in in BUILT_IN.items()
        if built_in.list_name is name
    ]
    views += [
        ("", view.name, read_filters(name, view.filters))
        for view in saved_views.list_views(session, actor, name=name)
    ]
    links = [
        ViewLink(title, list_href(name, filters), filters == active, key) for key, title, filters in views
    ]
    is_new = bool(active) and not any(link.current for link in links)
    return ListViews(links, url_for("saved_views.add", **values) if is_new else "")


def _form_page(form: ViewForm, heading: str, cancel: str) -> ResponseReturnValue:
    page = render_template(
        "account/view.html",
        form=form,
        heading=heading,
        action=here(),
        cancel=cancel,
        name_max=saved_views.NAME_MAX,
    )
    return page, 400 if form.errors else 200
