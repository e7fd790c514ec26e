"""Last connection check of executor groups, as the change history has it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.models.group import Group
from app.services.auditing.audit import changes_of
from app.services.executors.checks import ACTION
from app.store.accounts import audit


@dataclass(frozen=True, slots=True)
class LastCheck:
    """Result of the last connection check of a group."""

    at_ms: Millis
    #: instances that were probed, and those that answered
    addresses: int
    answered: int
    #: the group has not been changed since
    is_current: bool
    #: addresses that answered, and those that did not; empty for checks of former versions
    reached: frozenset[str] = frozenset()
    unreached: frozenset[str] = frozenset()


def last_checks(session: Session, groups: Sequence[Group]) -> dict[int, LastCheck]:
    """Return group id -> last check, of groups that were checked."""
    changed_ms = {group.id: group.update_time or 0 for group in groups}
    checks = {}
    for entry in audit.find_newest(session, ACTION, "group", list(changed_ms)):
        detail = changes_of(entry)
        # former versions wrote entries without it
        if "answered" in detail:
            checks[entry.object_id] = LastCheck(
                entry.at_ms,
                detail["addresses"],
                detail["answered"],
                is_current=entry.at_ms >= changed_ms[entry.object_id],
                reached=frozenset(detail.get("reached", ())),
                unreached=frozenset(detail.get("unreached", ())),
            )
    return checks
