"""Rows of the list of executor groups: states of instances, heartbeats, drains, jobs, connection checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.executors.instance_state import InstanceState
from app.models.group import Group
from app.services.executors.instance_records import count_states, find_records
from app.services.executors.instances import find_of_groups
from app.services.executors.last_checks import LastCheck, last_checks
from app.settings.config import Network
from app.store.executors import drains, last_seen
from app.store.executors.address_runs import runs_read
from app.store.jobs import listing as job_lists


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Row of the list."""

    group: Group
    #: last heartbeat of any of its executors, registered or not; None: unknown
    last_seen_ms: Millis | None
    #: number of drained addresses
    drained: int
    jobs: int
    #: None: not checked since it was changed
    check: LastCheck | None
    #: state -> number of its instances, the worst first; without those that get no runs
    states: Mapping[InstanceState, int]
    #: of the last day, on its instances; more if they are cut
    runs: int
    failures: int
    is_cut: bool


def group_rows(
    session: Session, groups: Sequence[Group], *, networks: tuple[Network, ...], now_ms: Millis
) -> list[GroupRow]:
    """Return the rows of these groups; the number of queries does not depend on theirs."""
    ids = {group.id for group in groups}
    last = last_seen.find_last(session, {group.app_name for group in groups})
    drain_rows, jobs = drains.find_drained(session, ids), job_lists.count_by_group(session, ids)
    checks = last_checks(session, groups)
    instances = find_of_groups(session, groups, now_ms=now_ms)
    records = find_records(session, groups, instances, checks, networks=networks, now_ms=now_ms)
    evidence = {group_id: [row.evidence for row in rows] for group_id, rows in records.items()}
    runs = {group_id: sum(row.runs for row in rows) for group_id, rows in evidence.items()}
    most = runs_read(len(groups))
    return [
        GroupRow(
            group,
            last.get(group.app_name),
            len(drain_rows.get(group.id, ())),
            jobs.get(group.id, 0),
            checks[group.id] if group.id in checks and checks[group.id].is_current else None,
            count_states(records[group.id]),
            runs[group.id],
            sum(row.failures for row in evidence[group.id]),
            runs[group.id] >= most,
        )
        for group in groups
    ]
