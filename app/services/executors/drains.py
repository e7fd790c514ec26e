"""Draining an address of an executor group: from then on no new run is sent to it, until somebody undoes it."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.draining import bare_address
from app.domain.permissions import Actor, Right
from app.domain.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.group import Group
from app.services import audit
from app.services.executors.groups import MISSING, get_group
from app.services.executors.instances import find_instances
from app.store import drains, group_lists


def drain(session: Session, group_id: int, address: str, *, actor: Actor, now_ms: Millis) -> None:
    """Drain an address; nothing happens where it is drained already. Needs the right to operate the group.

    Raises InvalidInput for an address the group does not have.
    """
    group = _held(session, group_id, actor)
    known = {
        bare_address(instance.address): instance
        for instance in find_instances(session, group, now_ms=now_ms).rows
    }
    instance = known.get(bare_address(address))
    if instance is None:
        raise InvalidInput("address", N_("%(address)s is no address of this executor", address=address[:255]))
    if instance.drain is None:
        drains.insert_drain(session, group_id, instance.address, username=actor.username, now_ms=now_ms)
        audit.record(
            session,
            "group.drain",
            actor=actor,
            now_ms=now_ms,
            target=("group", group_id),
            changes={"address": instance.address},
        )


def undrain(session: Session, group_id: int, address: str, *, actor: Actor, now_ms: Millis) -> None:
    """Let new runs go to an address again; nothing happens where it is not drained. Needs the right to operate the group."""
    _held(session, group_id, actor)
    if drains.delete_drain(session, group_id, address):
        audit.record(
            session,
            "group.undrain",
            actor=actor,
            now_ms=now_ms,
            target=("group", group_id),
            changes={"address": address},
        )


def _held(session: Session, group_id: int, actor: Actor) -> Group:
    """Return the group, which nobody removes until the end of the transaction: no row of a group that is gone stays behind."""
    get_group(session, group_id, actor=actor, right=Right.OPERATE)
    group = group_lists.hold_group(session, group_id)
    if group is None:
        raise NotFound(MISSING)
    return group
