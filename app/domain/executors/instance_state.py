"""State of an instance, from what is known of it: heartbeats, runs that it took or refused, connection tests.

Runs and tests go to the instance, heartbeats come from it. So only the first two show that it can be
reached, and of these the latest counts: an instance that refused the last run is not fine, whatever its
heartbeat says, until it takes a run or answers a test.
"""

from dataclasses import dataclass
from enum import StrEnum

from app.clock import Millis

#: an instance fails from so many failed runs on, if they are at least half of its runs
FAILURES_MIN, FAILURES_SHARE = 3, 0.5


class InstanceState(StrEnum):
    """State of an instance, the worst first."""

    #: never called, because its address is not allowed
    UNUSABLE = "unusable"
    #: the last run or test did not get through
    REFUSING = "refusing"
    #: it sent heartbeats, but none lately
    SILENT = "silent"
    #: it takes runs, and most of them fail
    FAILING = "failing"
    #: not in the address list: no run is sent to it
    OFFLINE = "offline"
    #: entered by hand, without a heartbeat, a run or a test
    UNKNOWN = "unknown"
    OK = "ok"


#: states in which runs that are sent to an instance will probably fail
TROUBLED = frozenset(
    {InstanceState.UNUSABLE, InstanceState.REFUSING, InstanceState.SILENT, InstanceState.FAILING}
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an instance. Instants of 0: never, in the period that was read."""

    is_usable: bool = True
    is_listed: bool = True
    #: a heartbeat came lately
    beats: bool = False
    #: it should send heartbeats: it was registered, not entered by hand
    should_beat: bool = True
    #: the last run that it took, and the last one that it did not
    accepted_ms: Millis = 0
    refused_ms: Millis = 0
    #: the last test that it answered, and the last one that it did not
    answered_ms: Millis = 0
    unanswered_ms: Millis = 0
    #: runs of the last day, and those that failed
    runs: int = 0
    failures: int = 0

    @property
    def reached_ms(self) -> Millis:
        """When something last got through to it."""
        return max(self.accepted_ms, self.answered_ms)

    @property
    def missed_ms(self) -> Millis:
        """When something last did not."""
        return max(self.refused_ms, self.unanswered_ms)


def instance_state(evidence: Evidence) -> InstanceState:
    """Return the state of an instance."""
    if not evidence.is_usable:
        return InstanceState.UNUSABLE
    if not evidence.is_listed:
        return InstanceState.OFFLINE
    if evidence.missed_ms > evidence.reached_ms:
        return InstanceState.REFUSING
    if evidence.should_beat and not evidence.beats:
        return InstanceState.SILENT
    if evidence.failures >= max(FAILURES_MIN, evidence.runs * FAILURES_SHARE):
        return InstanceState.FAILING
    return InstanceState.OK if evidence.beats or evidence.reached_ms else InstanceState.UNKNOWN
