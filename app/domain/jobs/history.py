"""History of a job: assignment of its versions to the audit entries that made them."""

from collections.abc import Sequence
from typing import NamedTuple

from app.clock import Millis

#: actions that make a version if they change a field
MAKING = frozenset({"job.add", "job.update"})


class Mark(NamedTuple):
    """Instant and user of an entry or a version; of an entry also its action."""

    at_ms: Millis
    #: empty: not a user, or not known
    username: str
    action: str = ""


def versions_made(entries: Sequence[Mark], versions: Sequence[Mark]) -> dict[int, int]:
    """Return index of an entry -> index of the version made in its transaction; both newest first.

    A version and its entry have the same instant and user.
    """
    versions_left = list(enumerate(versions))
    version_by_entry: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if entry.action not in MAKING or not entry.username:
            continue
        match = next((pair for pair in versions_left if pair[1][:2] == entry[:2]), None)
        if match is not None:
            versions_left.remove(match)
            version_by_entry[index] = match[0]
    return version_by_entry
