"""Views a user keeps: filters of a list under a name; and the page a login leads to. Everybody has their own, nobody sees others'."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.domain.list_filters import TEXT_MAX, ListName, filters_text, kept_filters
from app.domain.permissions import Actor
from app.domain.texts import N_, folded
from app.errors import InvalidInput, NotFound
from app.models.saved_view import SavedView
from app.services.jobs.rules import required_text
from app.store import saved_views, users

MISSING = N_("There is no such view")
NAME_MAX = 40
#: views of one user and list
VIEWS_MAX = 30
TAKEN = N_("You have a view with this name: choose another name, or delete that view first")
#: begins the start page that is a view: ``view:12``
VIEW_PREFIX = "view:"


def list_views(session: Session, actor: Actor, *, name: ListName | None = None) -> list[SavedView]:
    """Return one's views, of one list or of all, by list and name."""
    return saved_views.list_views(session, actor.user_id, list_name=name)


def get_view(session: Session, view_id: int, *, actor: Actor) -> SavedView:
    """Return one of one's views; NotFound where it is missing or somebody else's."""
    view = saved_views.find_view(session, actor.user_id, view_id)
    if view is None:
        raise NotFound(MISSING)
    return view


def add_view(
    session: Session, list_name: ListName, typed: str, given: Mapping[str, str], *, actor: Actor
) -> int:
    """Keep the filters among the parameters of an address under a name; return the view's id. Raises InvalidInput."""
    filters = filters_text(kept_filters(list_name, given))
    if not filters:
        raise InvalidInput(
            "filters", N_("Set a filter in the list first: a view without one is the list itself")
        )
    if len(filters) > TEXT_MAX:
        raise InvalidInput("filters", N_("The filters are too long to be kept: shorten their texts"))
    users.lock_user(
        session, actor.user_id
    )  # one after the other: two at once could each see room for one more
    if saved_views.count_views(session, actor.user_id, list_name=list_name) >= VIEWS_MAX:
        raise InvalidInput(
            "name", N_("You have %(limit)s views of this list already: delete one first", limit=VIEWS_MAX)
        )
    view = SavedView(user_id=actor.user_id, list_name=list_name.value, filters=filters, **_named(typed))
    _check_free(session, view)
    session.add(view)
    session.flush()
    return view.id


def rename_view(session: Session, view_id: int, typed: str, *, actor: Actor) -> None:
    """Give one of one's views another name; raises InvalidInput."""
    users.lock_user(session, actor.user_id)
    view = get_view(session, view_id, actor=actor)
    for column, value in _named(typed).items():
        setattr(view, column, value)
    _check_free(session, view)


def remove_view(session: Session, view_id: int, *, actor: Actor) -> None:
    """Delete one of one's views; where it was the start page, that is the run report again."""
    view = get_view(session, view_id, actor=actor)
    if saved_views.find_start(session, actor.user_id) == f"{VIEW_PREFIX}{view.id}":
        saved_views.replace_start(session, actor.user_id, "")
    session.delete(view)


def start_page(session: Session, user_id: int) -> str:
    """Return what a user chose as start page; empty: nothing, or a view that is gone."""
    target = saved_views.find_start(session, user_id)
    if target.startswith(VIEW_PREFIX) and start_view(session, user_id, target) is None:
        return ""
    return target


def start_view(session: Session, user_id: int, target: str) -> SavedView | None:
    """Return the view a start page such as ``view:12`` is, None where it is none or gone."""
    number = target.removeprefix(VIEW_PREFIX)
    if number == target or not number.isdecimal():
        return None
    return saved_views.find_view(session, user_id, int(number))


def choose_start(session: Session, target: str, *, actor: Actor) -> None:
    """Choose where one's login leads; the caller knows what may be chosen."""
    users.lock_user(session, actor.user_id)
    saved_views.replace_start(session, actor.user_id, target)


def _named(typed: str) -> dict[str, str]:
    name = required_text("name", " ".join(typed.split()), NAME_MAX, N_("Enter a name"))
    if not name.isprintable():
        raise InvalidInput("name", N_("A name holds no invisible character"))
    return {"name": name, "name_key": folded(name)}


def _check_free(session: Session, view: SavedView) -> None:
    others = saved_views.list_views(session, view.user_id, list_name=view.list_name)
    if any(each.name_key == view.name_key and each.id != view.id for each in others):
        raise InvalidInput("name", TAKEN)
