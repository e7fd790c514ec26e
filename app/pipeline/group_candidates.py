"""Group candidates: the addresses of a group that may get a run. Part of the claim.

Drained addresses are left out, unless a person has entered them for the run.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import AddressType
from app.domain.executors.addresses import has_scheme
from app.domain.executors.draining import is_drained, leave_out
from app.models.group import split_addresses
from app.pipeline.group_addresses import find_foreign, withholds_token
from app.store.executors import drains, groups, registry
from app.store.executors.groups import RoutingGroup
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun


class GroupCandidates(NamedTuple):
    """Columns of a group for dispatch, with its addresses that take new runs and the drained ones."""

    app_name: str
    #: whether a person has entered the addresses
    is_manual: bool
    #: its own access tokens, the one to send first; empty: the global token
    tokens: tuple[str, ...]
    open: tuple[str, ...]
    drained_addresses: tuple[str, ...]
    #: all drained addresses of the group in their bare form, including those not in its list
    bare_drained: frozenset[str]
    #: addresses, without a final slash, of executors that take the logical time of a run
    logical: frozenset[str]
    #: addresses that start a log id only once, even if it is sent again; others might start it twice
    durable: frozenset[str]
    #: most runs of its jobs at once; 0: no limit
    max_running: int = 0
    #: addresses in its runs that do not, or no longer, belong to the group
    foreign: frozenset[str] = frozenset()
    #: those of them that must not get the group's own token, nor any if the group does not exist
    foreign_to_token: frozenset[str] = frozenset()


def find_group_candidates(
    session: Session, pending: Sequence[tuple[PendingFire, JobToRun]], *, now_ms: Millis
) -> dict[int, GroupCandidates]:
    """Return the candidates by group id; a group that does not exist has no name and no address."""
    group_ids = {job.job_group for _, job in pending}
    group_by_id = groups.find_for_claim(session, group_ids)
    drained_by_group = drains.find_drained(session, group_ids)
    foreign = find_foreign(session, _addresses_to_check(pending), group_by_id, now_ms=now_ms)
    resent = (
        {fire.address for fire, _ in pending if fire.address and fire.attempt} if drained_by_group else set()
    )
    announcing = registry.find_announcing(session, resent, "durable-dedup") if resent else set()
    candidates = {}
    for group_id in group_ids:
        group = group_by_id.get(group_id) or RoutingGroup("", AddressType.AUTOMATIC)
        bare = drained_by_group.get(group_id, frozenset())
        durable = frozenset(address for address, app_name in announcing if app_name == group.app_name)
        foreign_addresses = foreign.get(group_id, frozenset())
        candidates[group_id] = GroupCandidates(
            group.app_name,
            group.address_type == AddressType.MANUAL,
            group.tokens,
            *leave_out(_routable(group), bare),
            bare,
            group.logical,
            durable,
            group.max_running,
            foreign_addresses,
            foreign_addresses if withholds_token(group_by_id.get(group_id)) else frozenset(),
        )
    return candidates


def _addresses_to_check(pending: Iterable[tuple[PendingFire, JobToRun]]) -> dict[int, set[str]]:
    """Return group id -> the addresses in the lists of its fires, and those that fires must keep."""
    addresses_by_group: dict[int, set[str]] = {}
    for fire, job in pending:
        if fire.address_list or fire.address:
            fire_address = (fire.address,) if fire.address else ()
            addresses_by_group.setdefault(job.job_group, set()).update(
                fire_address, split_addresses(fire.address_list)
            )
    return addresses_by_group


def _routable(group: RoutingGroup) -> list[str]:
    """Return the addresses of a group that can be called.

    A Java admin also lists registered addresses without a scheme.
    """
    return [
        address
        for address in group.addresses
        if has_scheme(address) or group.address_type != AddressType.AUTOMATIC
    ]


def is_restricted(fire: PendingFire) -> bool:
    """Whether a person has entered addresses for this run."""
    return bool(split_addresses(fire.address_list))


def addresses_for(fire: PendingFire, candidates: GroupCandidates) -> tuple[str, ...]:
    """Return the addresses a run may go to; of those entered for it the ones of its group, drained or not."""
    run_addresses = split_addresses(fire.address_list)
    if not run_addresses:
        return candidates.open
    return tuple(address for address in run_addresses if address not in candidates.foreign)


def fixed_address(fire: PendingFire, candidates: GroupCandidates) -> str | None:
    """Return the address a run must keep: that of its shard, or of an earlier send.

    None if it is drained by now, or if it was not sent there yet and may not be. A run that a durable
    executor may have accepted stays with it, even if its registration has expired since the last check: the
    boot id in the fire shows where it was sent.
    """
    if fire.address is None:
        return None
    foreign_addresses = candidates.foreign if is_restricted(fire) else candidates.foreign_to_token
    if fire.address in foreign_addresses and not fire.attempt:
        return None
    if not is_drained(fire.address, candidates.bare_drained):
        return fire.address
    sent_there = fire.attempt > 0 and bool(fire.boot_id or fire.address in candidates.durable)
    return fire.address if sent_there or is_restricted(fire) else None
