"""Rows of the list of executor groups: heartbeats, drains, jobs, and the last connection check."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.models.group import Group
from app.services.auditing.audit import changes_of
from app.services.executors.checks import ACTION
from app.store.accounts import audit
from app.store.executors import drains, last_seen
from app.store.jobs import listing as job_lists


@dataclass(frozen=True, slots=True)
class LastCheck:
    """Result of the last connection check of a group, not older than its address list."""

    at_ms: Millis
    #: instances that were probed, and those that answered
    addresses: int
    answered: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Row of the list."""

    group: Group
    #: last heartbeat of any of its executors, registered or not; None: unknown
    last_seen_ms: Millis | None
    #: number of drained addresses
    drained: int
    jobs: int
    #: None: not checked
    check: LastCheck | None


def group_rows(session: Session, groups: Sequence[Group]) -> list[GroupRow]:
    """Return the rows of these groups; the number of queries does not depend on theirs."""
    ids = {group.id for group in groups}
    last = last_seen.find_last(session, {group.app_name for group in groups})
    drain_rows, jobs = drains.find_drained(session, ids), job_lists.count_by_group(session, ids)
    checks = last_checks(session, groups)
    return [
        GroupRow(
            group,
            last.get(group.app_name),
            len(drain_rows.get(group.id, ())),
            jobs.get(group.id, 0),
            checks.get(group.id),
        )
        for group in groups
    ]


def last_checks(session: Session, groups: Sequence[Group]) -> dict[int, LastCheck]:
    """Return group id -> last check, of groups checked since they were changed."""
    changed_ms = {group.id: group.update_time or 0 for group in groups}
    checks = {}
    for entry in audit.find_newest(session, ACTION, "group", list(changed_ms)):
        detail = changes_of(entry)
        # former versions wrote entries without it
        if entry.at_ms >= changed_ms[entry.object_id] and "answered" in detail:
            checks[entry.object_id] = LastCheck(entry.at_ms, detail["addresses"], detail["answered"])
    return checks
