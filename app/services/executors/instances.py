"""The instances of an executor group: who beats, who is in the list, who is drained, and what each has to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.config import Network
from app.domain.draining import bare_address
from app.domain.enums import AddressType
from app.executors.addresses import refusal
from app.models.drain import Drain
from app.models.group import Group
from app.models.last_seen import LastSeen
from app.models.registry import Registration
from app.store import drains, last_seen, overview, registry
from app.store.overview import Load

#: executors beat every 30 s: one that was not heard of for longer than this is shown as silent
SILENT_AFTER_MS: Millis = 40_000
#: forgotten instances are listed for so long
FORGOTTEN_DAYS = 7
NOTHING = Load(0, 0)


class Presence(StrEnum):
    """Whether an instance is there."""

    ONLINE = "online"
    #: in the list, and not heard of lately: runs are sent to it all the same
    SILENT = "silent"
    #: entered by hand, and never heard of: nobody knows
    ENTERED = "entered"
    #: not in the list: no run is sent to it
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Instance:
    """One address of a group."""

    address: str
    presence: Presence
    #: the last heartbeat; None: it has never registered, or nobody remembers
    last_seen_ms: Millis | None
    #: it is registered now
    registered: bool
    #: in the address list of the group
    listed: bool
    #: what it says, or said, of itself when it registers; empty: nothing
    client: str
    load: Load
    #: None: it takes new runs
    drain: Drain | None

    @property
    def is_known(self) -> bool:
        """Whether it is registered, or entered for the group: only such addresses are called."""
        return self.listed or self.registered

    @property
    def online(self) -> bool:
        """Whether it is there as far as anybody knows."""
        return self.presence in (Presence.ONLINE, Presence.ENTERED)


@dataclass(frozen=True, slots=True)
class Instances:
    """The instances of a group by address, and what has none yet."""

    rows: Sequence[Instance]
    #: runs that are due and whose address is not chosen yet
    unplaced: int
    #: those that are neither registered nor in the list any more, and were there in the last days, the last one first
    forgotten: Sequence[LastSeen] = ()

    @property
    def forgotten_days(self) -> int:
        """How far back forgotten instances are listed."""
        return FORGOTTEN_DAYS

    def unusable(self, networks: tuple[Network, ...]) -> dict[str, str]:
        """Return address -> why it is never called, for those that are not."""
        return {
            instance.address: reason
            for instance in self.rows
            if (reason := refusal(instance.address, networks))
        }

    @property
    def open(self) -> list[Instance]:
        """Those that new runs are sent to."""
        return [instance for instance in self.rows if instance.listed and instance.drain is None]

    @property
    def drained(self) -> list[Instance]:
        """Those that are drained."""
        return [instance for instance in self.rows if instance.drain is not None]

    @property
    def all_drained(self) -> bool:
        """Whether the group has addresses and every one of them is drained."""
        return any(instance.listed for instance in self.rows) and not self.open


def find_instances(session: Session, group: Group, *, now_ms: Millis) -> Instances:
    """Return the instances of a group: those that beat, those in its list, the drained ones, and any that still have runs."""
    beats = {found.registry_value: found for found in overview.find_registrations(session, [group.app_name])}
    loads = overview.count_by_address(session, group.id, now_ms=now_ms)
    drained = {drain.address: drain for drain in drains.find_of_group(session, group.id)}
    unplaced = loads.pop(None, NOTHING).waiting
    addresses = {*beats, *group.addresses, *(address for address in loads if address)}
    known = {bare_address(address) for address in addresses}
    addresses |= {address for address in drained if address not in known}
    remembered = _by_address(last_seen.find_of_app(session, group.app_name))
    rows = []
    for address in sorted(addresses):
        beat, listed, gone = (
            beats.get(address),
            address in group.addresses,
            remembered.pop(bare_address(address), None),
        )
        rows.append(
            Instance(
                address=address,
                presence=_presence(group, beat, listed=listed, now_ms=now_ms),
                last_seen_ms=beat.update_time
                if beat is not None
                else gone.last_seen_ms
                if gone is not None
                else None,
                registered=beat is not None,
                listed=listed,
                client=said.capabilities if (said := beat or gone) is not None else "",
                load=loads.get(address, NOTHING),
                drain=drained.get(bare_address(address)),
            )
        )
    return Instances(
        rows,
        unplaced,
        [gone for gone in remembered.values() if gone.last_seen_ms >= now_ms - FORGOTTEN_DAYS * DAY_MS],
    )


def _by_address(newest_first: Sequence[LastSeen]) -> dict[str, LastSeen]:
    """Return bare address -> when it was last there; of two spellings the later counts."""
    found: dict[str, LastSeen] = {}
    for each in newest_first:
        found.setdefault(bare_address(each.address), each)
    return found


def _presence(group: Group, beat: Registration | None, *, listed: bool, now_ms: Millis) -> Presence:
    if beat is not None and (beat.update_time or 0) >= registry.alive_since(
        now_ms, within_ms=SILENT_AFTER_MS
    ):
        return Presence.ONLINE
    if not listed:
        return Presence.OFFLINE
    return Presence.ENTERED if beat is None and group.address_type == AddressType.MANUAL else Presence.SILENT
