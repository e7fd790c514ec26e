"""History of a job: which of its audit entries made which of its versions."""

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
    left = list(enumerate(versions))
    made: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if entry.action not in MAKING or not entry.username:
            continue
        found = next((pair for pair in left if pair[1][:2] == entry[:2]), None)
        if found is not None:
            left.remove(found)
            made[index] = found[0]
    return made
