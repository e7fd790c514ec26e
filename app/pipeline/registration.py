"""Registration: registry rows of executors, and the address lists of automatic groups derived from them."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.rows import bulk
from app.domain.enums import NodeKind, RegistryGroup
from app.domain.executors.addresses import has_scheme
from app.errors import Conflict, InvalidInput
from app.executors.addresses import check_address
from app.models.group import Group
from app.models.registry import Registration
from app.pipeline.archive_at_once import fetch_at_once
from app.settings.config import Network
from app.store.executors import groups, last_seen, registry
from app.store.executors.last_seen import Departure
from app.store.fires import open as open_fires
from app.store.nodes import nodes
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import SCHEMAS_DIGEST, RegistryRequest, to_handlers_header

logger = logging.getLogger(__name__)

#: addresses stored per application, and in all
APP_MAX = 200
TOTAL_MAX = 5_000
APP_NAME_MAX = 255
#: longest schemas stored for one executor, in bytes
SCHEMAS_MAX = 64_000
#: executors send a heartbeat every 30 s: within this time one of every live executor has arrived
HEARD_AFTER_MS: Millis = 40_000
#: longest outage of the consoles after which an address that registers does not remove the others
OUTAGE_MS: Millis = 60 * MINUTE_MS


def check_registration(request: RegistryRequest, networks: tuple[Network, ...]) -> None:
    """Raise InvalidInput for a registration that can never be used.

    A missing field gets the message of XXL-JOB. An address that lacks only its scheme is accepted, as in
    XXL-JOB, but nothing is routed to it.
    """
    if not (
        request.registry_group.strip() and request.registry_key.strip() and request.registry_value.strip()
    ):
        raise InvalidInput("registryValue", "Illegal Argument.")
    if len(request.registry_key) > APP_NAME_MAX:
        raise InvalidInput("registryKey", f"registryKey is longer than {APP_NAME_MAX} characters")
    address = request.registry_value
    check_address(address if has_scheme(address) else f"http://{address}", networks)


class RegistryAnswer(NamedTuple):
    """What an executor of ours is answered."""

    #: whether it has schemas that it should send
    needs_schemas: bool = False
    #: whether an executor group has its AppName; also true where that is not known
    has_group: bool = True


def register(
    session: Session, request: RegistryRequest, announcement: Capabilities, *, now_ms: Millis
) -> RegistryAnswer:
    """Record a heartbeat; a new address joins its groups' lists in this transaction.

    Raises Conflict if too many are registered. An executor that registers again, or with a new boot id, has
    restarted: its runs are checked at once.
    """
    group, app_name, address = request.registry_group, request.registry_key, request.registry_value
    if group not in RegistryGroup.__members__:  # XXL-JOB answers 200 as well and fills no address list
        logger.info(
            "registration ignored registry_group=%r app_name=%s address=%s", group[:50], app_name, address
        )
        return RegistryAnswer()
    announced_row: bulk.Row = {
        "capabilities": replace(announcement, boot_id="", schemas="").to_header(),
        "boot_id": announcement.boot_id,
        "handlers": to_handlers_header(announcement.handlers),
    }
    is_ours = bool(announcement.boot_id or announcement.schemas)
    last = registry.find_last_beat(session, group, app_name, address) if is_ours else None
    needs_schemas = False
    if not announcement.schemas or request.schemas is not None:
        announced_row["schemas"] = _schemas_text(request, announcement)
    else:
        needs_schemas = last is None or last.schemas_digest != announcement.schemas
    if registry.touch(session, group, app_name, address, announced_row=announced_row, now_ms=now_ms):
        if announcement.boot_id and announcement.boot_id != (last.boot_id if last is not None else ""):
            _check_runs_after_restart(session, address, announcement.boot_id, now_ms)
        return RegistryAnswer(needs_schemas, last is None or last.has_group)
    if registry.count_registrations(session, app_name) >= APP_MAX:
        raise Conflict(f"{app_name} has {APP_MAX} addresses registered already")
    if registry.count_registrations(session) >= TOTAL_MAX:
        raise Conflict(f"{TOTAL_MAX} addresses are registered already")
    registry.insert_registration(
        session, group, app_name, address, announced_row=announced_row, now_ms=now_ms
    )
    logger.info("executor registered app_name=%s address=%s", app_name, address)
    _refresh_one(session, app_name, now_ms=now_ms)
    _check_runs_after_restart(session, address, announcement.boot_id, now_ms)
    return RegistryAnswer(needs_schemas, not is_ours or bool(groups.find_by_app_name(session, app_name)))


def _schemas_text(request: RegistryRequest, announcement: Capabilities) -> str | None:
    """Return digest and JSON of the schemas, None without any; of too long ones only the digest is kept."""
    if not announcement.schemas:
        return None
    text = dump_json(request.schemas).decode()
    return announcement.schemas.ljust(SCHEMAS_DIGEST) + (text if len(text.encode()) <= SCHEMAS_MAX else "{}")


def _check_runs_after_restart(session: Session, address: str, boot_id: str, now_ms: Millis) -> None:
    if count := open_fires.check_soon(session, [address], now_ms=now_ms, boot_id=boot_id):
        logger.warning("executor restarted address=%s runs_to_check=%s", address, count)


def deregister(session: Session, request: RegistryRequest, *, now_ms: Millis) -> None:
    """Remove an address and store when it was last seen; it leaves its groups' lists in this transaction.

    The logs of its runs are fetched at once: it may end as soon as they have.
    """
    row = registry.find_registration(
        session, request.registry_group, request.registry_key, request.registry_value
    )
    if row is None:
        return
    _remember(session, [row], now_ms)
    if registry.delete_registration(
        session, request.registry_group, request.registry_key, request.registry_value
    ):
        logger.info(
            "executor deregistered app_name=%s address=%s", request.registry_key, request.registry_value
        )
        _refresh_one(session, request.registry_key, now_ms=now_ms, removed_address=request.registry_value)
        fetch_at_once(session, [request.registry_value])


def listed_addresses(
    session: Session, app_name: str, group_addresses: Collection[str], *, now_ms: Millis
) -> set[str]:
    """Return the live addresses of an application, and those of a list that were live within OUTAGE_MS.

    Whether these are gone is for the monitor to judge, which knows whether their heartbeats could arrive.
    """
    find = partial(registry.find_live, session, now_ms=now_ms, app_names=[app_name])
    live, recent = ({*find(longer_ms=ms).get(app_name, [])} for ms in (0, OUTAGE_MS))
    return live | (recent & {*group_addresses})


def _refresh_one(session: Session, app_name: str, *, now_ms: Millis, removed_address: str = "") -> None:
    """Update the lists of an application's automatic groups after one address came or left."""
    # The groups are locked first, so that a transaction that waits here reads what the previous one wrote.
    for group in groups.lock_automatic(session, [app_name]):
        addresses = listed_addresses(session, app_name, group.addresses, now_ms=now_ms)
        _set_list(session, group, addresses - {removed_address}, now_ms=now_ms)


def refresh_addresses(session: Session, *, now_ms: Millis, forget: bool = True) -> int:
    """Update the lists of all automatic groups from the registry, sorted; return how many changed.

    With ``forget`` False no address leaves a list.
    """
    automatic = groups.lock_automatic(session)  # They are locked first, as in _refresh_one.
    live = registry.find_live(session, now_ms=now_ms)
    return sum(
        _set_list(
            session,
            group,
            {*live.get(group.app_name, []), *(() if forget else group.addresses)},
            now_ms=now_ms,
        )
        for group in automatic
    )


def _set_list(session: Session, group: Group, addresses: Collection[str], *, now_ms: Millis) -> bool:
    """Store the address list of a group if it differs; return whether it was changed."""
    address_list = ",".join(sorted(addresses)) or None
    if address_list == (group.address_list or None):
        return False
    is_changed = groups.set_addresses(session, group.id, address_list, now_ms=now_ms)
    logger.info(
        "addresses changed group_id=%s app_name=%s addresses=%s", group.id, group.app_name, address_list
    )
    return is_changed


def is_listening(session: Session, *, now_ms: Millis) -> bool:
    """Whether heartbeats can arrive: a console is running, or an XXL-JOB admin has received one recently."""
    return nodes.count_live(session, NodeKind.CONSOLE, now_ms=now_ms) > 0 or registry.has_beat(
        session, since_ms=now_ms - HEARD_AFTER_MS
    )


def tick_registry(session: Session, *, now_ms: Millis, forget: bool = True) -> None:
    """Remove silent executors unless ``forget`` is False, then update all address lists."""
    if forget and (dead := registry.find_dead(session, now_ms=now_ms)):
        _remember(session, dead)
        fetch_at_once(session, {row.registry_value for row in dead})
        logger.warning(
            "executors removed after 90 s of silence count=%s", registry.delete_dead(session, now_ms=now_ms)
        )
    _drop_returned(session, now_ms)
    refresh_addresses(session, now_ms=now_ms, forget=forget)


def _remember(session: Session, rows: Sequence[Registration], at_ms: Millis | None = None) -> None:
    """Store when these executors were last seen: at ``at_ms``, else at their last heartbeats, if known."""
    last_seen.record(
        session,
        [
            Departure(row.registry_key, row.registry_value, seen_ms, row.capabilities)
            for row in rows
            if row.registry_group == RegistryGroup.EXECUTOR and (seen_ms := at_ms or row.update_time)
        ],
    )


def _drop_returned(session: Session, now_ms: Millis) -> None:
    """Delete the last-seen times of executors that are back.

    A Java admin may remove their rows later, and then the stored time would be wrong.
    """
    row_by_address = last_seen.find_ids(session)
    if row_by_address:
        live = registry.find_live(
            session, now_ms=now_ms, app_names={app_name for app_name, _ in row_by_address}
        )
        returned_ids = [
            row_id
            for (app_name, address), row_id in row_by_address.items()
            if address in live.get(app_name, [])
        ]
        last_seen.delete_rows(session, returned_ids)
