"""Statements of the console on executor groups; those of the pipeline are in ``groups``."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, case, delete, false, func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import RegistryGroup
from app.domain.lists.orders import UNSORTED, Order
from app.models.group import Group
from app.models.last_seen import LastSeen
from app.models.registry import Registration
from app.store.alarms import channels
from app.store.base.ordering import SortKey, by_text, ordering
from app.store.base.paging import ID_MAX, Page, contains, fetch_page, is_storable

#: order of lists
DEFAULT_ORDER = (Group.app_name, Group.title, Group.id)
#: order of select boxes and pickers, which show the title
BY_TITLE = (func.lower(Group.title), Group.app_name, Group.id)
_ALL_IDS = select(Group.id)
_ADDRESSES = func.length(Group.address_list) - func.length(func.replace(Group.address_list, ",", ""))
_LAST_HEARTBEAT = (
    select(func.max(Registration.update_time))
    .where(Registration.registry_group == RegistryGroup.EXECUTOR, Registration.registry_key == Group.app_name)
    .correlate(Group)
    .scalar_subquery()
)
_LAST_SEEN = (
    select(func.max(LastSeen.last_seen_ms))
    .where(LastSeen.app_name == Group.app_name)
    .correlate(Group)
    .scalar_subquery()
)
_BEATS = _LAST_HEARTBEAT.is_not(None)
#: sort keys of the list, by their name in the URL
ORDERS: dict[str, SortKey] = {
    "appname": SortKey((Group.app_name, Group.title)),
    "title": by_text(Group.title),
    "registration": SortKey((Group.address_type,)),
    "addresses": SortKey((case((func.coalesce(Group.address_list, "") == "", 0), else_=_ADDRESSES + 1),)),
    # The order is that of the column: groups with a heartbeat follow those with a last-seen time only.
    "heartbeat": SortKey(
        (case((_BEATS, 1), else_=0), _LAST_HEARTBEAT, case((_BEATS, 0), else_=_LAST_SEEN)),
        rank=case((_BEATS, 0), (_LAST_SEEN.is_not(None), 0), else_=1),
    ),
}


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Filters and order of the list of groups; empty texts match all."""

    app_name: str = ""
    title: str = ""
    order: Order = UNSORTED
    #: in either of the two
    text: str = ""


def find_group(session: Session, group_id: int) -> Group | None:
    """Return a group or None."""
    return session.get(Group, group_id)


def hold_group(session: Session, group_id: int) -> Group | None:
    """Return a group, protected from deletion until the end of the transaction."""
    if not 0 < group_id <= ID_MAX:  # The column holds no such id.
        return None
    return session.get(Group, group_id, with_for_update={"read": True}, populate_existing=True)


def hold_groups(session: Session, group_ids: Collection[int]) -> set[int]:
    """Return those of the groups that exist, protected from deletion until the end of the transaction."""
    query = select(Group.id).where(Group.id.in_(list(group_ids))).order_by(Group.id)
    return set(session.scalars(query.with_for_update(read=True)))


def lock_groups(session: Session) -> list[Group]:
    """Lock and return all groups, so that two requests cannot both delete the last one."""
    return list(
        session.scalars(
            select(Group).order_by(Group.id).with_for_update().execution_options(populate_existing=True)
        )
    )


def lock_group(session: Session, group_id: int) -> Group | None:
    """Lock and return a group."""
    return session.get(Group, group_id, with_for_update=True, populate_existing=True)


def list_groups(
    session: Session,
    group_filter: GroupFilter,
    *,
    group_ids: Collection[int] | None,
    start: int,
    length: int,
) -> Page[Group]:
    """Return a page of these groups (None: all), in the default order unless another is given."""
    order = ordering(group_filter.order, ORDERS, row_id=Group.id, default=DEFAULT_ORDER)
    query = select(Group).order_by(*order).where(*_conditions(group_ids, group_filter))
    return fetch_page(session, query, start=start, length=length)


def list_after(
    session: Session,
    group_filter: GroupFilter,
    *,
    group_ids: Collection[int] | None,
    after: tuple[str, int] | None,
    limit: int,
) -> list[Group]:
    """Return the first of these groups (None: all) by AppName and id, after those (None: from the start)."""
    query = select(Group).where(*_conditions(group_ids, group_filter))
    if after is not None:
        name, group_id = after
        query = query.where(
            or_(Group.app_name > name, and_(Group.app_name == name, Group.id > group_id))
            if is_storable(name)
            else false()
        )
    return list(session.scalars(query.order_by(Group.app_name, Group.id).limit(limit)))


def find_visible(session: Session, group_ids: Collection[int] | None) -> list[Group]:
    """Return these groups (None: all) by title, which is what pages show of them."""
    query = select(Group).order_by(*BY_TITLE)
    if group_ids is not None:
        query = query.where(Group.id.in_(list(group_ids)))
    return list(session.scalars(query))


def existing_ids(session: Session, group_ids: Collection[int]) -> set[int]:
    """Return those of the ids that belong to a group."""
    return set(session.scalars(select(Group.id).where(Group.id.in_(list(group_ids))))) if group_ids else set()


def all_ids(session: Session) -> set[int]:
    """Return the ids of all groups."""
    return {row.id for row in bulk.read_rows(session, _ALL_IDS)}


def _conditions(group_ids: Collection[int] | None, group_filter: GroupFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [] if group_ids is None else [Group.id.in_(list(group_ids))]
    texts = ((Group.app_name, group_filter.app_name), (Group.title, group_filter.title))
    conditions += [contains(column, text) for column, text in texts if text]
    if group_filter.text:
        conditions.append(or_(*(contains(column, group_filter.text) for column, _text in texts)))
    return conditions


def delete_group(session: Session, group_id: int) -> None:
    """Delete a group, also from the alarm channels for it."""
    channels.forget(session, group_ids=[group_id])
    affected(session, delete(Group).where(Group.id == group_id))


def find_groupless(session: Session, *, seen_after_ms: Millis, limit: int) -> dict[str, int]:
    """Return appname -> number of registered executors, for applications without a group."""
    query = select(Registration.registry_key, func.count()).where(
        Registration.registry_group == RegistryGroup.EXECUTOR,
        Registration.update_time >= seen_after_ms,
        Registration.registry_key.not_in(select(Group.app_name)),
    )
    rows = session.execute(
        query.group_by(Registration.registry_key).order_by(Registration.registry_key).limit(limit)
    )
    return {row[0]: row[1] for row in rows}
