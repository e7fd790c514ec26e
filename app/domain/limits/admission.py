"""Admission: whether a due run gets its slots, and in which order those that wait do.

Slots in use are the open runs. The scopes of a run are its job (for each text of `limit_key` by itself), its
executor group and named limits; all must have room.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from app.clock import DAY_MS, Millis
from app.domain.enums import WhenFull
from app.domain.limits.waits import Wait, WaitReason

#: waiting for this long counts as much as a step of the priority, and as a run of the same key in front
STEP_MS: Millis = 600_000
#: runs of backfills are so far behind: after all others
BEHIND_MS: Millis = 3_650 * DAY_MS
#: priority that moves no run
PRIORITY = 5
#: more runs of a job do not wait: they are skipped
WAITING_MAX = 10_000
#: runs that are named in a reason
NAMED = 5


class Scope(NamedTuple):
    """What is counted: a limit, of a job with keys one of them."""

    limit_id: int
    key: str = ""


class Demand(NamedTuple):
    """What a run asks for."""

    #: scope -> slots it takes there
    slots: Mapping[Scope, int]
    when_full: WhenFull = WhenFull.WAIT
    #: it waits already, so that nothing is decided anew if there is no room
    waits: bool = False


class Action(StrEnum):
    """What becomes of a run."""

    ADMIT = "admit"
    #: it goes on waiting
    KEEP = "keep"
    WAIT = "wait"
    SKIP = "skip"
    #: it waits, and those of its job that wait already are skipped
    NEWEST = "newest"
    #: as NEWEST, and the runs in progress are killed
    REPLACE = "replace"


class Decision(NamedTuple):
    """What becomes of a run, and what it waits for."""

    action: Action
    wait: Wait | None = None


_WITHOUT_ROOM = {
    WhenFull.WAIT: Action.WAIT,
    WhenFull.SKIP: Action.SKIP,
    WhenFull.NEWEST: Action.NEWEST,
    WhenFull.REPLACE: Action.REPLACE,
}


class Slots:
    """Slots of scopes and the runs that have them, while runs are decided in their order.

    A run that finds no room closes the scope that has too little for the runs behind it: none overtakes it
    there. A scope that has room stays open, so that they pass a run that waits for another one.
    """

    #: ``slots``: by limit; ``holders``: log ids of the runs that have the slots; ``closed_scopes``: those
    #: that are not locked, hence give none

    def __init__(
        self,
        slots: Mapping[int, int],
        used: Mapping[Scope, int],
        holders: Mapping[Scope, Sequence[int]] | None = None,
        closed_scopes: Iterable[Scope] = (),
    ) -> None:
        self._slots = slots
        self.used = Counter(used)
        self._holders = holders or {}
        self._closed = set(closed_scopes)

    def decide(self, demand: Demand) -> Decision:
        """Return what becomes of a run; one that is admitted must be taken before the next is decided."""
        waits = [wait for scope, count in demand.slots.items() if (wait := self._wait(scope, count))]
        if not waits:
            return Decision(Action.ADMIT)
        wait = next((wait for wait in waits if wait.reason is WaitReason.FULL), waits[0])
        if demand.waits:
            self._close(demand)
            return Decision(Action.KEEP, wait)
        action = _WITHOUT_ROOM[demand.when_full]
        if action is not Action.SKIP:
            self._close(demand)
        reason = WaitReason.REPLACING if action is Action.REPLACE else wait.reason
        return Decision(action, wait._replace(reason=reason))

    def take(self, demand: Demand) -> None:
        """Count a run that is admitted."""
        self.used.update(demand.slots)

    def _wait(self, scope: Scope, count: int) -> Wait | None:
        slots, used = self._slots.get(scope.limit_id, 0), self.used[scope]
        # A run that needs more than there is gets all.
        fits = used + count <= slots or (used == 0 < slots)
        if fits and scope not in self._closed:
            return None
        reason = WaitReason.BEHIND if fits else WaitReason.FULL
        return Wait(scope.limit_id, reason, used, slots, tuple(self._holders.get(scope, ())[:NAMED]))

    def _close(self, demand: Demand) -> None:
        waits = [scope for scope, count in demand.slots.items() if self._wait(scope, count)]
        self._closed.update(waits)


def place_of(due_ms: Millis, priority: int, turn: int = 0) -> Millis:
    """Return the place of a waiting run: the lowest is first.

    ``due_ms``: when the first run of its chain of retries was due; ``turn``: how many runs of the same key
    are in progress or wait before it.
    """
    return due_ms + (PRIORITY - priority + turn) * STEP_MS
