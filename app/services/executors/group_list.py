"""Executor groups as users see them: one, and lists. The right is checked on the group itself."""

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right, require_right
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.group import Group
from app.store.base.paging import Page
from app.store.executors import listing as group_lists
from app.store.executors.listing import GroupFilter

MISSING = N_("Executor id is invalid")


def get_group(session: Session, group_id: int, *, actor: Actor, right: Right = Right.VIEW) -> Group:
    """Return a group the actor has ``right`` on; raises NotFound if it is missing or not visible."""
    group = group_lists.find_group(session, group_id)
    if group is None:
        raise NotFound(MISSING)
    require_right(actor, group.id, right, missing=MISSING)
    return group


def list_groups(
    session: Session, group_filter: GroupFilter, *, actor: Actor, start: int = 0, length: int = 10
) -> Page[Group]:
    """Return a page of the groups the actor may see."""
    group_ids = actor.group_ids(Right.VIEW)
    return group_lists.list_groups(session, group_filter, group_ids=group_ids, start=start, length=length)


def list_after(
    session: Session, group_filter: GroupFilter, *, actor: Actor, after: tuple[str, int] | None, limit: int
) -> list[Group]:
    """Return the first groups the actor may see by AppName and id, after these (None: from the start)."""
    group_ids = actor.group_ids(Right.VIEW)
    return group_lists.list_after(session, group_filter, group_ids=group_ids, after=after, limit=limit)


def visible_groups(session: Session, actor: Actor) -> list[Group]:
    """Return all groups the actor may see, in display order."""
    return group_lists.find_visible(session, actor.group_ids(Right.VIEW))
