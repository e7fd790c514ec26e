"""Instances of an executor group: registered, listed, drained or recently seen addresses and their load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import TypeVar

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.enums import AddressType
from app.domain.executors.draining import bare_address
from app.executors.addresses import refusal
from app.models.drain import Drain
from app.models.group import Group
from app.models.last_seen import LastSeen
from app.models.registry import Registration
from app.settings.config import Network
from app.store.executors import drains, last_seen, registry
from app.store.pickers import overview
from app.store.pickers.overview import Load

#: executors send a heartbeat every 30 s; later ones are shown as not responding
SILENT_AFTER_MS: Millis = 40_000
#: instances that are no longer registered are listed for this long
LAST_SEEN_DAYS = 7
NO_LOAD = Load(0, 0)
R = TypeVar("R")
K = TypeVar("K", int, str)


class Presence(StrEnum):
    """State of an instance."""

    ONLINE = "online"
    #: in the address list, without a recent heartbeat; runs are still sent to it
    SILENT = "silent"
    #: entered by hand and never registered, so its state is unknown
    ENTERED = "entered"
    #: not in the address list; no run is sent to it
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Instance:
    """One address of a group."""

    address: str
    presence: Presence
    #: last heartbeat; None: unknown
    last_seen_ms: Millis | None
    #: registered now
    is_registered: bool
    #: in the address list of the group
    is_listed: bool
    #: client program as registered; empty: not reported
    client: str
    #: changes with every start of our own client; empty: not reported
    boot_id: str
    load: Load
    #: None: not drained
    drain: Drain | None
    #: names of its handlers as registered, see ``from_handlers_header``; empty: not reported
    handlers: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it is registered or listed; only such addresses are called."""
        return self.is_listed or self.is_registered


@dataclass(frozen=True, slots=True)
class Instances:
    """All instances of a group."""

    rows: Sequence[Instance]
    #: number of runs that are due and not routed yet
    unplaced_count: int
    #: instances no longer registered or listed, seen in the last days, newest first
    last_seen: Sequence[LastSeen] = ()

    @property
    def gone_days(self) -> int:
        """Number of days that ``last_seen`` covers."""
        return LAST_SEEN_DAYS

    def unusable(self, networks: tuple[Network, ...]) -> dict[str, str]:
        """Return address -> the reason why it is never called."""
        return {
            instance.address: reason
            for instance in self.rows
            if (reason := refusal(instance.address, networks))
        }

    @property
    def open(self) -> list[Instance]:
        """Instances that new runs are sent to."""
        return [instance for instance in self.rows if instance.is_listed and instance.drain is None]

    @property
    def drained(self) -> list[Instance]:
        """Instances that are drained."""
        return [instance for instance in self.rows if instance.drain is not None]

    @property
    def all_drained(self) -> bool:
        """Whether the group has listed instances and all of them are drained."""
        return any(instance.is_listed for instance in self.rows) and not self.open


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows loaded for the groups, keyed by application name or group id."""

    beats: Mapping[str, Sequence[Registration]]
    loads: Mapping[int, Mapping[str | None, Load]]
    drains: Mapping[int, Sequence[Drain]]
    #: the most recent first
    former: Mapping[str, Sequence[LastSeen]]


def find_instances(session: Session, group: Group, *, now_ms: Millis) -> Instances:
    """Return the instances of a group: registered, listed or drained ones, and any that still have runs."""
    return find_of_groups(session, [group], now_ms=now_ms)[group.id]


def find_of_groups(session: Session, groups: Sequence[Group], *, now_ms: Millis) -> dict[int, Instances]:
    """Return group id -> its instances; the number of queries does not depend on that of the groups."""
    ids, app_names = {group.id for group in groups}, {group.app_name for group in groups}
    rows = _Rows(
        _group_by(overview.find_registrations(session, app_names), attrgetter("registry_key")),
        overview.count_by_address(session, ids, now_ms=now_ms),
        _group_by(drains.find_of_groups(session, ids), attrgetter("group_id")),
        _group_by(last_seen.find_of_apps(session, app_names), attrgetter("app_name")),
    )
    return {group.id: _instances_of(group, rows, now_ms) for group in groups}


def count_online(session: Session, groups: Sequence[Group], *, now_ms: Millis) -> int:
    """Return how many distinct addresses of these groups are online; one statement."""
    beats = overview.find_registrations(session, {group.app_name for group in groups})
    return len({bare_address(beat.registry_value) for beat in beats if _is_online(beat, now_ms)})


def _group_by(rows: Sequence[R], key: Callable[[R], K]) -> dict[K, list[R]]:
    groups: dict[K, list[R]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _instances_of(group: Group, tables: _Rows, now_ms: Millis) -> Instances:
    beats = {beat.registry_value: beat for beat in tables.beats.get(group.app_name, ())}
    loads = tables.loads.get(group.id, {})
    drain_of = {drain.address: drain for drain in tables.drains.get(group.id, ())}
    addresses = {*beats, *group.addresses, *(address for address in loads if address)}
    bare_addresses = {bare_address(address) for address in addresses}
    addresses |= {address for address in drain_of if address not in bare_addresses}
    former = _by_address(tables.former.get(group.app_name, ()))
    rows = []
    for address in sorted(addresses):
        beat, is_listed = beats.get(address), address in group.addresses
        former_row = former.pop(bare_address(address), None)
        report = beat or former_row
        rows.append(
            Instance(
                address=address,
                presence=_presence(group, beat, is_listed=is_listed, now_ms=now_ms),
                last_seen_ms=_last_seen(beat, former_row),
                is_registered=beat is not None,
                is_listed=is_listed,
                client=report.capabilities if report is not None else "",
                boot_id=beat.boot_id if beat is not None else "",
                load=loads.get(address, NO_LOAD),
                drain=drain_of.get(bare_address(address)),
                handlers=(beat.handlers or "") if beat is not None else "",
            )
        )
    return Instances(
        rows,
        loads.get(None, NO_LOAD).waiting,
        [row for row in former.values() if row.last_seen_ms >= now_ms - LAST_SEEN_DAYS * DAY_MS],
    )


def _last_seen(beat: Registration | None, former_row: LastSeen | None) -> Millis | None:
    if beat is not None:
        return beat.update_time
    return former_row.last_seen_ms if former_row is not None else None


def _by_address(newest_first: Sequence[LastSeen]) -> dict[str, LastSeen]:
    """Return bare address -> its latest row; spellings of the same address are merged."""
    row_by_address: dict[str, LastSeen] = {}
    for row in newest_first:
        row_by_address.setdefault(bare_address(row.address), row)
    return row_by_address


def _presence(group: Group, beat: Registration | None, *, is_listed: bool, now_ms: Millis) -> Presence:
    if beat is not None and _is_online(beat, now_ms):
        return Presence.ONLINE
    if not is_listed:
        return Presence.OFFLINE
    return Presence.ENTERED if beat is None and group.address_type == AddressType.MANUAL else Presence.SILENT


def _is_online(beat: Registration, now_ms: Millis) -> bool:
    return (beat.update_time or 0) >= registry.alive_since(now_ms, within_ms=SILENT_AFTER_MS)
