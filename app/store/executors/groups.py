"""Statements of the pipeline on executor groups and their address lists."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Text, literal_column, null, select, type_coerce, union_all, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.domain.enums import AddressType, RegistryGroup
from app.domain.executors.addresses import without_slash
from app.models.group import Group, split_addresses, tokens_in_order
from app.models.registry import Registration
from executor_client.wire.run_reports import LOGICAL_TIME

_BY_IDS = select(Group).where(among(Group.id))


def find_groups(session: Session, group_ids: Collection[int]) -> dict[int, Group]:
    """Return the existing groups by id, reading only those that are not in the session."""
    session_groups = (
        session.identity_map.get(session.identity_key(Group, group_id)) for group_id in group_ids
    )
    groups = {group.id: group for group in session_groups if isinstance(group, Group)}
    if missing_ids := [group_id for group_id in group_ids if group_id not in groups]:
        groups |= {group.id: group for group in session.scalars(_BY_IDS, {WANTED: missing_ids})}
    return groups


class RoutingGroup(NamedTuple):
    """Columns of a group that dispatch needs."""

    app_name: str
    address_type: int
    addresses: Sequence[str] = ()
    #: its own access tokens, the one to send first; empty: the global token
    tokens: tuple[str, ...] = ()
    #: most runs of its jobs at once; 0: no limit
    max_running: int = 0
    #: registered addresses, without a final slash, of executors that take logical times; only for a claim
    logical: frozenset[str] = frozenset()


_FOR_DISPATCH = select(
    Group.id,
    Group.app_name,
    Group.address_type,
    Group.address_list,
    Group.access_token,
    Group.former_token,
    Group.max_running,
).where(among(Group.id))
#: rows without an AppName have the address of an executor that takes logical times
_FOR_CLAIM = union_all(
    _FOR_DISPATCH.add_columns(null().label("address")),
    select(Group.id, *(null() for _ in range(6)), Registration.registry_value)
    .join(Registration, Registration.registry_key == Group.app_name)
    .where(
        among(Group.id),
        Registration.registry_group == RegistryGroup.EXECUTOR,
        Registration.capabilities.like(literal_column(f"'%{LOGICAL_TIME}%'")),
    ),
)


def find_for_dispatch(session: Session, group_ids: Collection[int]) -> dict[int, RoutingGroup]:
    """Return the columns of the existing groups that dispatch needs, by id."""
    rows = bulk.read_among(session, _FOR_DISPATCH, list(group_ids))
    return {row[0]: _routing_group(*row[1:]) for row in rows}


def find_for_claim(session: Session, group_ids: Collection[int]) -> dict[int, RoutingGroup]:
    """Return the groups as ``find_for_dispatch``, with the executors that take logical times."""
    rows = bulk.read_among(session, _FOR_CLAIM, list(group_ids))
    addresses: dict[int, set[str]] = {}
    for group_id, app_name, *_, address in rows:
        if app_name is None:
            addresses.setdefault(group_id, set()).add(without_slash(address))
    return {
        row[0]: _routing_group(*row[1:-1])._replace(logical=frozenset(addresses.get(row[0], ())))
        for row in rows
        if row[1] is not None
    }


def _routing_group(
    app_name: str,
    address_type: int,
    address_list: str | None,
    access_token: str | None,
    former_token: str | None,
    max_running: int,
) -> RoutingGroup:
    tokens = tokens_in_order(access_token, former_token)
    return RoutingGroup(app_name, address_type, split_addresses(address_list), tokens, max_running)


def find_by_app_name(session: Session, app_name: str) -> list[Group]:
    """Return the groups with an app name, compared exactly, also on MySQL, whose comparison ignores case."""
    rows = session.scalars(select(Group).where(Group.app_name == app_name).order_by(Group.id))
    return [group for group in rows if group.app_name.strip() == app_name]


def lock_automatic(session: Session, app_names: Collection[str] | None = None) -> list[Group]:
    """Lock and return the groups whose addresses come from the registry, ids ascending.

    None: of all applications.
    """
    rows = select(Group).where(Group.address_type == AddressType.AUTOMATIC).order_by(Group.id)
    if app_names is not None:
        rows = rows.where(Group.app_name.in_(app_names))
    return list(session.scalars(rows.with_for_update().execution_options(populate_existing=True)))


def set_addresses(session: Session, group_id: int, address_list: str | None, *, now_ms: Millis) -> bool:
    """Store the address list of an automatic group; False if it has become manual in the meantime."""
    automatic = update(Group).where(Group.id == group_id, Group.address_type == AddressType.AUTOMATIC)
    return affected(session, automatic.values(address_list=address_list, update_time=now_ms)) == 1


class StoredToken(NamedTuple):
    """Stored token: sealed, or plain if written by an older version or another program."""

    group_id: int
    app_name: str
    column: str
    text: str


def find_stored_tokens(session: Session) -> list[StoredToken]:
    """Return all tokens of groups as stored."""
    tokens = []
    for column in (Group.access_token, Group.former_token):
        sealed_text = type_coerce(column, Text)
        rows = session.execute(select(Group.id, Group.app_name, sealed_text).where(column.is_not(None)))
        tokens += [StoredToken(row[0], row[1], column.key, row[2]) for row in rows if row[2]]
    return tokens


def replace_stored_token(session: Session, token: StoredToken, new_text: str) -> bool:
    """Replace the stored form of a token unless it has been changed since it was read."""
    column = type_coerce(getattr(Group, token.column), Text)
    statement = update(Group).where(Group.id == token.group_id, column == token.text)
    return affected(session, statement.values({token.column: type_coerce(new_text, Text)})) == 1


def find_with_token(session: Session) -> list[Group]:
    """Return the groups that have an access token of their own."""
    return [
        group
        for group in session.scalars(select(Group).where(Group.access_token.is_not(None)))
        if group.tokens
    ]
