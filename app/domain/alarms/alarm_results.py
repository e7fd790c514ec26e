"""Results of alarms as lists show and filter them: several states are one result."""

from collections.abc import Mapping
from enum import StrEnum

from app.domain.enums import AlarmState


class AlarmResult(StrEnum):
    """What became of an alarm."""

    SENT = "sent"
    FAILED = "failed"
    #: kept back by a mute
    HELD = "held"
    #: waiting, or being sent
    WAITING = "waiting"
    #: the job has no channel
    SILENT = "silent"


#: result -> its states; an alarm that some targets have is both sent and failed
STATES: Mapping[AlarmResult, tuple[AlarmState, ...]] = {
    AlarmResult.SENT: (AlarmState.SENT, AlarmState.CLOSED, AlarmState.PARTLY),
    AlarmResult.FAILED: (AlarmState.FAILED, AlarmState.PARTLY),
    AlarmResult.HELD: (AlarmState.MUTED,),
    AlarmResult.WAITING: (AlarmState.PENDING, AlarmState.SENDING),
    AlarmResult.SILENT: (AlarmState.SILENT,),
}


def count_results(by_state: Mapping[str, int]) -> dict[AlarmResult, int]:
    """Return result -> number of alarms, from their numbers by state."""
    return {result: sum(by_state.get(state, 0) for state in states) for result, states in STATES.items()}
