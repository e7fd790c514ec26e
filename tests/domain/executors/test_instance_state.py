"""State of an instance: what was last known to get through decides, then heartbeats, then failures."""

from typing import Any

from app.domain.executors.instance_state import Evidence, InstanceState, instance_state
from tests.support.truth_table import truth_table

BY_HAND = {"should_beat": False}


@truth_table(
    "known, state",
    [
        ({"beats": True}, "ok"),
        ({"beats": True, "is_usable": False}, "unusable"),
        ({"beats": True, "is_listed": False}, "offline"),
        ({"is_listed": False, "refused_ms": 5}, "offline"),
        ({}, "silent"),
        (BY_HAND, "unknown"),
        (BY_HAND | {"beats": True}, "ok"),
        (BY_HAND | {"accepted_ms": 5}, "ok"),
        (BY_HAND | {"answered_ms": 5}, "ok"),
        (BY_HAND | {"refused_ms": 5}, "refusing"),
        (BY_HAND | {"unanswered_ms": 5}, "refusing"),
        # The later one counts, whether it was a run or a test.
        (BY_HAND | {"accepted_ms": 5, "refused_ms": 6}, "refusing"),
        (BY_HAND | {"accepted_ms": 6, "refused_ms": 5}, "ok"),
        (BY_HAND | {"accepted_ms": 5, "unanswered_ms": 6}, "refusing"),
        (BY_HAND | {"refused_ms": 5, "answered_ms": 6}, "ok"),
        (BY_HAND | {"answered_ms": 5, "refused_ms": 6}, "refusing"),
        (BY_HAND | {"accepted_ms": 5, "refused_ms": 5}, "ok"),
        # A heartbeat does not show that the instance can be reached.
        ({"beats": True, "refused_ms": 5}, "refusing"),
        ({"accepted_ms": 5}, "silent"),
        ({"beats": True, "runs": 3, "failures": 3}, "failing"),
        ({"beats": True, "runs": 2, "failures": 2}, "ok"),
        ({"beats": True, "runs": 6, "failures": 3}, "failing"),
        ({"beats": True, "runs": 7, "failures": 3}, "ok"),
        ({"beats": True, "runs": 9, "failures": 9, "refused_ms": 5}, "refusing"),
        ({"runs": 9, "failures": 9}, "silent"),
    ],
)
def test_the_state_of_an_instance(known: dict[str, Any], state: str) -> None:
    assert instance_state(Evidence(**known)) is InstanceState(state)
