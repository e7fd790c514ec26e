"""Who may get a run: a group's addresses without the drained ones, unless a person has entered others for the run. Part of the claim."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.domain.addresses import has_scheme
from app.domain.draining import is_drained, leave_out
from app.domain.enums import AddressType
from app.models.group import Group
from app.store import drains, groups, registry
from app.store.fires import PendingFire


class GroupCandidates(NamedTuple):
    """A group, the addresses of its list that take new runs, and those that are drained."""

    group: Group
    open: tuple[str, ...]
    drained: tuple[str, ...]
    #: all drained addresses of the group, bare: also those that are not in its list
    bare_drained: frozenset[str]
    #: addresses that start a log id once, also when it is sent again: anybody else would perhaps start it a second time
    durable: frozenset[str]


def find_group_candidates(
    session: Session, group_ids: Collection[int], pending: Sequence[PendingFire]
) -> dict[int, GroupCandidates]:
    """Return the groups by id, each with its drained addresses; one that does not exist has no name and no address."""
    of_groups = groups.find_groups(session, group_ids)
    drained = drains.find_drained(session, group_ids)
    resent = {fire.address for fire in pending if fire.address and fire.attempt} if drained else set()
    boots = registry.find_boots(session, resent) if resent else {}
    durable = frozenset(address for address, (_, said) in boots.items() if "durable-dedup" in said)
    found = {}
    for group_id in group_ids:
        group = of_groups.get(group_id) or Group(
            id=group_id, app_name="", title="", address_type=0, address_list=None
        )
        bare = drained.get(group_id, frozenset())
        found[group_id] = GroupCandidates(group, *leave_out(_routable(group), bare), bare, durable)
    return found


def _routable(group: Group) -> list[str]:
    """Return a group's addresses; of an automatic one those with a scheme, because a Java admin lists whatever has registered."""
    return [
        address
        for address in group.addresses
        if has_scheme(address) or group.address_type != AddressType.AUTOMATIC
    ]


def entered_addresses(fire: PendingFire) -> tuple[str, ...]:
    """Return the addresses a person has entered for this run: it goes there, drained or not."""
    return (
        tuple(text.strip() for text in fire.address_list.split(",") if text.strip())
        if fire.address_list
        else ()
    )


def fixed_address(fire: PendingFire, candidates: GroupCandidates) -> str | None:
    """Return the address a run keeps: that of a shard of a snapshot, or where it was sent before; None where that is drained by now.

    A run that a durable executor may have taken stays with it: it is under way there. That holds also where its registration is
    gone since the look: the fire says whom it was sent to.
    """
    if fire.address is None or not is_drained(fire.address, candidates.bare_drained):
        return fire.address
    sent_there = fire.attempt > 0 and bool(fire.boot_id or fire.address in candidates.durable)
    return fire.address if sent_there or entered_addresses(fire) else None
