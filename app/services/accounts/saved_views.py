"""Saved views (filters of a list under a name) and start pages. Each user has and sees their own."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor
from app.domain.lists.filters import TEXT_MAX, ListName, filters_text, kept_filters
from app.domain.text.limits import required_text
from app.domain.text.texts import N_, fold
from app.errors import InvalidInput, NotFound
from app.models.saved_view import SavedView
from app.store.accounts import saved_views, users

MISSING = N_("There is no such view")
NAME_MAX = 40
#: views per user and list
VIEWS_MAX = 30
TAKEN = N_("You already have a view with this name. Choose another name or delete that view first")
#: prefix of a start page that is a view: ``view:12``
VIEW_PREFIX = "view:"


def list_views(session: Session, actor: Actor, *, name: ListName | None = None) -> list[SavedView]:
    """Return the actor's views of one list, or of all, by list and name."""
    return saved_views.list_views(session, actor.user_id, list_name=name)


def get_view(session: Session, view_id: int, *, actor: Actor) -> SavedView:
    """Return a view of the actor; raises NotFound if it is missing or another user's."""
    view = saved_views.find_view(session, actor.user_id, view_id)
    if view is None:
        raise NotFound(MISSING)
    return view


def add_view(
    session: Session, list_name: ListName, name: str, parameters: Mapping[str, str], *, actor: Actor
) -> int:
    """Save the filters among the query parameters under a name; return the id. Raises InvalidInput."""
    filters = filters_text(kept_filters(list_name, parameters))
    if not filters:
        raise InvalidInput("filters", N_("Set a filter in the list first"))
    if len(filters) > TEXT_MAX:
        raise InvalidInput("filters", N_("The filters are too long to save; shorten their texts"))
    # The user is locked: two concurrent requests could both find room for one more view.
    users.lock_user(session, actor.user_id)
    if saved_views.count_views(session, actor.user_id, list_name=list_name) >= VIEWS_MAX:
        raise InvalidInput(
            "name", N_("You already have %(limit)s views of this list. Delete one first", limit=VIEWS_MAX)
        )
    view = SavedView(user_id=actor.user_id, list_name=list_name.value, filters=filters, **_name_columns(name))
    _check_free(session, view)
    session.add(view)
    session.flush()
    return view.id


def rename_view(session: Session, view_id: int, name: str, *, actor: Actor) -> None:
    """Rename a view of the actor. Raises InvalidInput."""
    users.lock_user(session, actor.user_id)
    view = get_view(session, view_id, actor=actor)
    for column, value in _name_columns(name).items():
        setattr(view, column, value)
    _check_free(session, view)


def remove_view(session: Session, view_id: int, *, actor: Actor) -> None:
    """Delete a view of the actor; if it was the start page, that is the dashboard again."""
    view = get_view(session, view_id, actor=actor)
    if saved_views.find_start(session, actor.user_id) == f"{VIEW_PREFIX}{view.id}":
        saved_views.replace_start(session, actor.user_id, "")
    session.delete(view)


def start_page(session: Session, user_id: int) -> str:
    """Return the start page of a user; empty for none or a deleted view."""
    target = saved_views.find_start(session, user_id)
    if target.startswith(VIEW_PREFIX) and start_view(session, user_id, target) is None:
        return ""
    return target


def start_view(session: Session, user_id: int, target: str) -> SavedView | None:
    """Return the view of a start page such as ``view:12``; None if it is not a view or deleted."""
    number = target.removeprefix(VIEW_PREFIX)
    if number == target or not number.isdecimal():
        return None
    return saved_views.find_view(session, user_id, int(number))


def choose_start(session: Session, target: str, *, actor: Actor) -> None:
    """Set the actor's start page; the caller has checked the choice."""
    users.lock_user(session, actor.user_id)
    saved_views.replace_start(session, actor.user_id, target)


def _name_columns(text: str) -> dict[str, str]:
    name = required_text("name", " ".join(text.split()), NAME_MAX, N_("Enter a name"))
    if not name.isprintable():
        raise InvalidInput("name", N_("The name must not contain invisible characters"))
    return {"name": name, "name_key": fold(name)}


def _check_free(session: Session, view: SavedView) -> None:
    views = saved_views.list_views(session, view.user_id, list_name=view.list_name)
    if any(other_view.name_key == view.name_key and other_view.id != view.id for other_view in views):
        raise InvalidInput("name", TAKEN)
