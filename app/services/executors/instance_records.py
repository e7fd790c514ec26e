"""Records of instances: state, runs and failures of the last day; for many groups at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.enums import AddressType
from app.domain.executors.draining import bare_address
from app.domain.executors.instance_state import Evidence, InstanceState, instance_state
from app.models.group import Group
from app.services.executors.instances import Instance, Instances, Presence
from app.services.executors.last_checks import LastCheck
from app.settings.config import Network
from app.store.executors import address_runs
from app.store.executors.address_runs import AddressRuns

#: runs and tests of an instance that count
PERIOD_MS: Millis = DAY_MS


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """An instance with its state and what that is derived from."""

    instance: Instance
    state: InstanceState
    evidence: Evidence
    #: id of the newest failed run of the period; None: none failed
    failed_id: int | None

    @property
    def since_ms(self) -> Millis:
        """When it last refused a run or did not answer a test, if that is its state; otherwise 0."""
        return self.evidence.missed_ms if self.state is InstanceState.REFUSING else 0


def find_records(
    session: Session,
    groups: Sequence[Group],
    instances_by_group: Mapping[int, Instances],
    checks: Mapping[int, LastCheck],
    *,
    networks: tuple[Network, ...],
    now_ms: Millis,
) -> dict[int, list[InstanceRecord]]:
    """Return group id -> records of its instances, in their order; one statement."""
    ids = [group.id for group in groups]
    rows = address_runs.count_by_address(session, ids, since_ms=now_ms - PERIOD_MS)
    runs = _by_address(rows)
    records = {}
    for group in groups:
        instances, check = instances_by_group[group.id], checks.get(group.id)
        if check is not None and check.at_ms < now_ms - PERIOD_MS:
            check = None
        unusable = instances.unusable(networks)
        records[group.id] = [
            _record(
                group,
                instance,
                runs.get((group.id, bare_address(instance.address))),
                check,
                is_usable=instance.address not in unusable,
            )
            for instance in instances.rows
        ]
    return records


def _by_address(rows: Iterable[AddressRuns]) -> dict[tuple[int, str], AddressRuns]:
    """Return (group id, bare address) -> its runs; spellings of the same address are merged."""
    runs_by_address: dict[tuple[int, str], AddressRuns] = {}
    for row in rows:
        key = (row.group_id, bare_address(row.address or ""))
        runs_by_address[key] = row.merged_with(runs_by_address[key]) if key in runs_by_address else row
    return runs_by_address


def count_states(records: Iterable[InstanceRecord]) -> dict[InstanceState, int]:
    """Return state -> number of instances, the worst first, without those that get no runs."""
    states = [record.state for record in records if record.state is not InstanceState.OFFLINE]
    return {state: states.count(state) for state in InstanceState if state in states}


def _record(
    group: Group, instance: Instance, runs: AddressRuns | None, check: LastCheck | None, *, is_usable: bool
) -> InstanceRecord:
    has_answer = check is not None and instance.address in check.reached
    is_silent = check is not None and instance.address in check.unreached
    at_ms = check.at_ms if check is not None else 0
    evidence = Evidence(
        is_usable=is_usable,
        is_listed=instance.is_listed,
        beats=instance.presence is Presence.ONLINE,
        should_beat=instance.is_registered or group.address_type == AddressType.AUTOMATIC,
        accepted_ms=(runs.accepted_ms or 0) if runs is not None else 0,
        refused_ms=(runs.refused_ms or 0) if runs is not None else 0,
        answered_ms=at_ms if has_answer else 0,
        unanswered_ms=at_ms if is_silent else 0,
        runs=runs.runs if runs is not None else 0,
        failures=runs.failures if runs is not None else 0,
    )
    return InstanceRecord(
        instance, instance_state(evidence), evidence, runs.failed_id if runs is not None else None
    )
