"""Closed lists of rounds: rules, kinds, states and outcomes, as they are stored and as the API has them."""

from enum import StrEnum


class RoundRule(StrEnum):
    """When a job runs after its predecessors (`rule` of `xxl_job_info.runs_after`)."""

    ALL_SUCCEEDED = "all_succeeded"
    ALL_ENDED = "all_ended"
    ANY_SUCCEEDED = "any_succeeded"
    K_OF_N = "k_of_n"


class RoundKind(StrEnum):
    """Which runs of the predecessors belong together (`round` of `xxl_job_info.runs_after`)."""

    LOGICAL_TIME = "logical_time"
    #: the day of the logical time in the job's zone
    DAY = "day"
    #: since the last decided round
    SINCE_LAST = "since_last"


class ShardRule(StrEnum):
    """How many shards of a broadcast have to succeed (`shards` of `xxl_job_info.runs_after`)."""

    ALL = "all"
    AT_LEAST = "at_least"
    ANY = "any"


class AtDeadline(StrEnum):
    """What becomes of a round that is not complete in time (`at_deadline` of `xxl_job_info.runs_after`)."""

    DROP = "drop"
    RUN = "run"
    WAIT = "wait"


class RoundState(StrEnum):
    """State of a round (`xxl_job_round.state`)."""

    OPEN = "open"
    STARTED = "started"
    NOT_RUN = "not_run"


class RoundReason(StrEnum):
    """Why a round was not run (`xxl_job_round.reason`)."""

    #: one predecessor too many did not succeed
    PREDECESSOR = "predecessor"
    DEADLINE = "deadline"
    #: predecessors, kind of round or shards were changed meanwhile
    EDITED = "edited"
    #: no predecessor has an instant that belongs to it
    EXCUSED = "excused"
    RESTORED = "restored"


class ArrivalOutcome(StrEnum):
    """What became of a predecessor, or of one shard of it, in a round (`xxl_job_arrival.outcome`)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: failed, and a retry is planned
    RETRYING = "retrying"
    UNRESOLVED = "unresolved"
    NOT_RUN = "not_run"
    EXCUSED = "excused"
