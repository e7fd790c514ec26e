"""Group addresses: check of the addresses in runs against those of their executor group.

A run restricted to addresses goes only to those that do, and the token of a group to no others.
"""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import AddressType
from app.domain.executors.addresses import without_slash
from app.models.group import Group
from app.store.executors import registry
from app.store.executors.groups import RoutingGroup


def find_foreign(
    session: Session,
    addresses_by_group: Mapping[int, Collection[str]],
    group_by_id: Mapping[int, Group | RoutingGroup],
    *,
    now_ms: Millis,
) -> dict[int, frozenset[str]]:
    """Return group id -> those of the addresses that are neither in its list nor registered and alive.

    Groups without any are left out; all are foreign to a group that does not exist. One statement, and only
    if an address is in no list.
    """
    unlisted_by_group = {}
    for group_id, addresses in addresses_by_group.items():
        group = group_by_id.get(group_id)
        if unlisted_addresses := _addresses_outside(addresses, group.addresses if group is not None else ()):
            unlisted_by_group[group_id] = unlisted_addresses
    app_names = {
        group_id: group.app_name
        for group_id in unlisted_by_group
        if (group := group_by_id.get(group_id)) is not None and not withholds_token(group)
    }
    live = registry.find_live(session, now_ms=now_ms, app_names={*app_names.values()}) if app_names else {}
    foreign = {
        group_id: _addresses_outside(addresses, live.get(app_names.get(group_id, ""), ()))
        for group_id, addresses in unlisted_by_group.items()
    }
    return {group_id: addresses for group_id, addresses in foreign.items() if addresses}


def withholds_token(group: Group | RoutingGroup | None) -> bool:
    """Whether no token must be sent to addresses that the group does not have; None: it was deleted.

    One that registers may only have deregistered, to finish its runs; from a list of a person it was removed.
    Nor does a registration make it one of the group then: its token may be known from a leak. A deleted group
    may have had its own token, and its executors must not learn the global one.
    """
    return group is None or (group.address_type == AddressType.MANUAL and bool(group.tokens))


def _addresses_outside(addresses: Iterable[str], group_addresses: Iterable[str]) -> frozenset[str]:
    bare_addresses = {without_slash(address) for address in group_addresses}
    return frozenset(address for address in addresses if without_slash(address) not in bare_addresses)
