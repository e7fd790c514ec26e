"""Start page: shown after a login and behind the product name; the dashboard unless the user chose another.

``/`` is always the dashboard.
"""

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.console.ui.notices import done
from app.console.ui.saved_views import BUILT_IN, ENDPOINTS, TITLES, built_in_filters, list_href, view_href
from app.console.web.access import Access
from app.console.web.current import context_path, current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.domain.lists.filters import ListName
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.saved_view import SavedView
from app.services.accounts import saved_views
from app.services.accounts.saved_views import VIEW_PREFIX

blueprint = Blueprint("start_page", __name__)
POLICY = {
    "lead": Access.LOGIN,
    "choose": Access.LOGIN,
}


@blueprint.get("/start")
def lead() -> ResponseReturnValue:
    """Redirect to the reader's start page."""
    return redirect(start_address(current_actor()), 303)


@blueprint.post("/account/start-page")
def choose() -> ResponseReturnValue:
    """Save the reader's choice."""
    target, actor = request.form.get("start_page", ""), current_actor()
    with session_scope() as session:
        if target not in dict(start_choices(saved_views.list_views(session, actor))):
            raise InvalidInput("start_page", N_("Choose one of the listed values"))
        saved_views.choose_start(session, target, actor=actor)
    return done("saved", url_for("account.show"))


def start_choices(views: list[SavedView]) -> list[tuple[str, str]]:
    """Return the options: value and text."""
    choices = [("", _("Dashboard")), *((name.value, str(TITLES[name])) for name in ListName)]
    views_by_key = [(key, view.list_name, str(view.title)) for key, view in BUILT_IN.items()]
    views_by_key += [(f"{VIEW_PREFIX}{view.id}", ListName(view.list_name), view.name) for view in views]
    return choices + [(key, f"{TITLES[name]}{_(': ')}{title}") for key, name, title in views_by_key]


def start_address(actor: Actor) -> str:
    """Return the URL of a user's start page; the dashboard if it is a view that no longer exists."""
    with read_scope() as session:
        return _address(session, actor, saved_views.start_page(session, actor.user_id))


def _address(session: Session, actor: Actor, target: str) -> str:
    if target in set(ListName):
        return url_for(ENDPOINTS[ListName(target)])
    if target in BUILT_IN:
        return list_href(BUILT_IN[target].list_name, built_in_filters(target, actor))
    view = saved_views.start_view(session, actor.user_id, target)
    return view_href(view) if view is not None else context_path()
