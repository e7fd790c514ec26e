"""Drained instances: no new run is sent to them until they are undrained."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.executors.draining import bare_address
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.drain import Drain
from app.models.group import Group
from app.pipeline.archive_at_once import fetch_at_once
from app.services.auditing import audit
from app.services.executors.group_list import MISSING, get_group
from app.services.executors.instances import find_instances
from app.store.executors import drains
from app.store.executors import listing as group_lists

NOT_DRAINED = N_("There is no drained instance with this id")


def drain(session: Session, group_id: int, address: str, *, actor: Actor, now_ms: Millis) -> Drain:
    """Drain an instance, unless it is drained already; return its row. Needs the right to operate the group.

    Raises InvalidInput if the group has no such instance.
    """
    group = _lock_group(session, group_id, actor)
    instances = find_instances(session, group, now_ms=now_ms)
    by_address = {bare_address(instance.address): instance for instance in instances.rows}
    instance = by_address.get(bare_address(address))
    if instance is None:
        raise InvalidInput(
            "address", N_("%(address)s is not an instance of this executor group", address=address[:255])
        )
    if instance.drain is not None:
        return instance.drain
    drains.insert_drain(session, group_id, instance.address, username=actor.username, now_ms=now_ms)
    fetch_at_once(session, [instance.address])
    audit.record(
        session,
        "group.drain",
        actor=actor,
        now_ms=now_ms,
        target=("group", group_id),
        changes={"address": instance.address},
    )
    return drains.get_by_address(session, group_id, instance.address)


def list_newest(session: Session, *, actor: Actor, group_id: int, before_id: int, limit: int) -> list[Drain]:
    """Return the newest drained addresses of a group (0: of all) that the actor may see.

    Their ids are below ``before_id`` (0: all).
    """
    group_ids = actor.group_ids(Right.VIEW)
    if group_id:
        group_ids = frozenset({group_id} if group_ids is None else {group_id} & group_ids)
    return drains.list_before(session, group_ids, before_id=before_id, limit=limit)


def get_drain(session: Session, drain_id: int, *, actor: Actor) -> Drain:
    """Return a drained address of a group the actor may see; raises NotFound."""
    row = drains.find_drain(session, drain_id)
    if row is None:
        raise NotFound(NOT_DRAINED)
    require_right(actor, row.group_id, Right.VIEW, missing=NOT_DRAINED)
    return row


def undrain(session: Session, group_id: int, address: str, *, actor: Actor, now_ms: Millis) -> None:
    """Send new runs to an instance again. Needs the right to operate the group."""
    _lock_group(session, group_id, actor)
    if drains.delete_drain(session, group_id, address):
        audit.record(
            session,
            "group.undrain",
            actor=actor,
            now_ms=now_ms,
            target=("group", group_id),
            changes={"address": address},
        )


def _lock_group(session: Session, group_id: int, actor: Actor) -> Group:
    """Return the group, locked against deletion until the commit, so that no orphaned row remains."""
    get_group(session, group_id, actor=actor, right=Right.OPERATE)
    group = group_lists.hold_group(session, group_id)
    if group is None:
        raise NotFound(MISSING)
    return group
