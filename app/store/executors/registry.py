"""Statements on `xxl_job_registry`: heartbeats of executors."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import RegistryGroup
from app.domain.executors.addresses import has_scheme, spellings, without_slash
from app.models.base import local_datetime
from app.models.group import Group
from app.models.registry import Registration
from executor_client.wire.protocol import SCHEMAS_DIGEST

#: an address without a heartbeat for this long is dead
DEAD_AFTER_MS: Millis = 90_000


def touch(
    session: Session,
    group: str,
    app_name: str,
    address: str,
    *,
    announced_row: bulk.Row,
    now_ms: Millis,
) -> bool:
    """Record a heartbeat of a registered address and what it announces; False if it is not registered."""
    statement = update(Registration).where(
        Registration.registry_group == group,
        Registration.registry_key == app_name,
        Registration.registry_value == address,
    )
    return affected(session, statement.values(update_time=now_ms, **announced_row)) > 0


class LastBeat(NamedTuple):
    """What a registered address announced last, and the groups of its application."""

    boot_id: str
    #: of the schemas that are stored; empty without any
    schemas_digest: str
    #: whether an executor group has its AppName
    has_group: bool


def find_last_beat(session: Session, group: str, app_name: str, address: str) -> LastBeat | None:
    """Return what an address announced last; None if it is not registered."""
    columns = (
        Registration.boot_id,
        func.substr(Registration.schemas, 1, SCHEMAS_DIGEST),
        Group.app_name,
    )
    query = (
        select(*columns)
        .select_from(Registration)
        .outerjoin(Group, Group.app_name == app_name)
        .where(
            Registration.registry_group == group,
            Registration.registry_key == app_name,
            Registration.registry_value == address,
        )
    )
    rows = session.execute(query).all()
    if not rows:
        return None
    # MySQL compares without case.
    has_group = any(row[2] is not None and row[2].strip() == app_name for row in rows)
    return LastBeat(rows[0][0] or "", rows[0][1] or "", has_group)


def insert_registration(
    session: Session,
    group: str,
    app_name: str,
    address: str,
    *,
    announced_row: bulk.Row,
    now_ms: Millis,
) -> None:
    """Insert an address unless another node has just inserted it."""
    row = {
        "registry_group": group,
        "registry_key": app_name,
        "registry_value": address,
        **announced_row,
        "update_time": now_ms,
    }
    bulk.insert_ignore(session, Registration, [row])


def find_handlers(session: Session, app_name: str) -> list[str]:
    """Return the handlers announced by the registered executors of an application, as in the header.

    Empty texts are of executors that announce none.
    """
    query = select(Registration.handlers).where(
        Registration.registry_group == RegistryGroup.EXECUTOR, Registration.registry_key == app_name
    )
    return [text or "" for text in session.scalars(query.distinct())]


def find_schemas(session: Session, app_name: str) -> str | None:
    """Return the schemas that the executors of an application announced last, as JSON; None without any."""
    query = select(Registration.schemas).where(
        Registration.registry_group == RegistryGroup.EXECUTOR,
        Registration.registry_key == app_name,
        Registration.schemas.is_not(None),
    )
    text = session.scalar(query.order_by(Registration.update_time.desc(), Registration.id).limit(1))
    return text[SCHEMAS_DIGEST:] if text else None


def find_registration(session: Session, group: str, app_name: str, address: str) -> Registration | None:
    """Return the registration of an address, or None."""
    query = select(Registration).where(
        Registration.registry_group == group,
        Registration.registry_key == app_name,
        Registration.registry_value == address,
    )
    return session.scalar(query)


def delete_registration(session: Session, group: str, app_name: str, address: str) -> bool:
    """Delete an address; False if it was not registered."""
    statement = delete(Registration).where(
        Registration.registry_group == group,
        Registration.registry_key == app_name,
        Registration.registry_value == address,
    )
    return affected(session, statement) > 0


def count_registrations(session: Session, app_name: str | None = None) -> int:
    """Return the number of registered addresses, of one application or of all."""
    rows = select(func.count()).select_from(Registration)
    if app_name is not None:
        rows = rows.where(Registration.registry_key == app_name)
    return session.scalar(rows) or 0


def alive_since(now_ms: Millis, *, within_ms: Millis = DEAD_AFTER_MS) -> Millis:
    """Return the time from which heartbeats lie within ``within_ms``.

    Columns hold local time: if clocks have been set back within that period, later heartbeats look older by
    as much.
    """
    local_period = local_datetime(now_ms) - local_datetime(now_ms - within_ms)
    set_back_ms = within_ms - int(local_period.total_seconds()) * 1000
    return now_ms - within_ms - max(set_back_ms, 0)


def find_dead(session: Session, *, now_ms: Millis) -> list[Registration]:
    """Return the addresses without a heartbeat for DEAD_AFTER_MS."""
    return list(session.scalars(select(Registration).where(_is_dead(now_ms)).order_by(Registration.id)))


def delete_dead(session: Session, *, now_ms: Millis) -> int:
    """Delete the addresses without a heartbeat for DEAD_AFTER_MS; return how many."""
    return affected(session, delete(Registration).where(_is_dead(now_ms)))


def _is_dead(now_ms: Millis) -> ColumnElement[bool]:
    """Match the addresses without a heartbeat for DEAD_AFTER_MS, or without the time of any."""
    return or_(Registration.update_time < alive_since(now_ms), Registration.update_time.is_(None))


def has_beat(session: Session, *, since_ms: Millis) -> bool:
    """Whether any executor has sent a heartbeat since then."""
    return (
        session.execute(select(Registration.id).where(Registration.update_time >= since_ms).limit(1)).first()
        is not None
    )


def find_live(
    session: Session, *, now_ms: Millis, app_names: Collection[str] | None = None, longer_ms: Millis = 0
) -> dict[str, list[str]]:
    """Return appname -> its live addresses, sorted, without those no run can be sent to.

    None: all applications. ``longer_ms``: those that were alive so long ago, too.
    """
    since = alive_since(now_ms, within_ms=DEAD_AFTER_MS + longer_ms)
    query = select(Registration.registry_key, Registration.registry_value).where(
        Registration.registry_group == RegistryGroup.EXECUTOR, Registration.update_time >= since
    )
    if app_names is not None:
        query = query.where(Registration.registry_key.in_(app_names))
    addresses_by_app: dict[str, set[str]] = {}
    for row in session.execute(query):
        if has_scheme(row.registry_value):
            addresses_by_app.setdefault(row.registry_key, set()).add(row.registry_value)
    return {app_name: sorted(addresses) for app_name, addresses in addresses_by_app.items()}


def find_boots(session: Session, addresses: Collection[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (address, appname) -> (boot id, capabilities) for those of the addresses with our own executors.

    By application too: what one announces for an address says nothing about the runs of another there. A
    final slash makes no difference, unless both spellings are registered.
    """
    rows = select(
        Registration.registry_value,
        Registration.registry_key,
        Registration.boot_id,
        Registration.capabilities,
    ).where(Registration.registry_value.in_(spellings(addresses)), Registration.boot_id != "")
    addresses_by_bare: dict[str, list[str]] = {}
    for address in addresses:
        addresses_by_bare.setdefault(without_slash(address), []).append(address)
    boots: dict[tuple[str, str], tuple[str, str]] = {}
    for row in session.execute(rows):
        for address in addresses_by_bare.get(without_slash(row.registry_value), ()):
            if address == row.registry_value or (address, row.registry_key) not in boots:
                boots[address, row.registry_key] = row.boot_id, row.capabilities
    return boots


def find_announcing(session: Session, addresses: Collection[str], word: str) -> set[tuple[str, str]]:
    """Return (address, appname) of those of the addresses whose executors announce a capability."""
    boots = find_boots(session, addresses)
    return {key for key, (_, capabilities) in boots.items() if word in capabilities.split(",")}
