"""Executor groups as the console lists and changes them; what the pipeline needs is in ``groups``."""

from collections.abc import Collection

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.db import affected
from app.models.group import Group
from app.store.paging import ID_MAX, Page, contains, fetch_page


def find_group(session: Session, group_id: int) -> Group | None:
    """Return a group or None."""
    return session.get(Group, group_id)


def hold_group(session: Session, group_id: int) -> Group | None:
    """Return a group that nobody removes until the end of the transaction."""
    if not 0 < group_id <= ID_MAX:  # no column holds it
        return None
    return session.get(Group, group_id, with_for_update={"read": True}, populate_existing=True)


def hold_groups(session: Session, group_ids: Collection[int]) -> set[int]:
    """Return those of the groups that exist; nobody removes them until the end of the transaction."""
    held = select(Group.id).where(Group.id.in_(list(group_ids))).order_by(Group.id)
    return set(session.scalars(held.with_for_update(read=True)))


def lock_groups(session: Session) -> list[Group]:
    """Return all groups, locked, so that the last one cannot vanish twice at once."""
    return list(session.scalars(select(Group).order_by(Group.id).with_for_update().execution_options(populate_existing=True)))


def lock_group(session: Session, group_id: int) -> Group | None:
    """Return a group whose row nobody else changes until the end of the transaction."""
    return session.get(Group, group_id, with_for_update=True, populate_existing=True)


def list_groups(session: Session, *, app_name: str, title: str, group_ids: Collection[int] | None, start: int, length: int) -> Page[Group]:
    """Return a page of these groups (None: of all) in the order of the lists."""
    query = select(Group).order_by(Group.app_name, Group.title, Group.id)
    if group_ids is not None:
        query = query.where(Group.id.in_(list(group_ids)))
    if app_name:
        query = query.where(contains(Group.app_name, app_name))
    if title:
        query = query.where(contains(Group.title, title))
    return fetch_page(session, query, start=start, length=length)


def find_visible(session: Session, group_ids: Collection[int] | None) -> list[Group]:
    """Return these groups (None: all) in the order of the selects."""
    query = select(Group).order_by(Group.app_name, Group.title, Group.id)
    if group_ids is not None:
        query = query.where(Group.id.in_(list(group_ids)))
    return list(session.scalars(query))


def existing_ids(session: Session, group_ids: Collection[int]) -> set[int]:
    """Return which of the ids belong to a group."""
    return set(session.scalars(select(Group.id).where(Group.id.in_(list(group_ids))))) if group_ids else set()


def delete_group(session: Session, group_id: int) -> None:
    """Delete a group."""
    affected(session, delete(Group).where(Group.id == group_id))
