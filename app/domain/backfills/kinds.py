"""Words of backfills: what is asked for, and what becomes of it."""

from enum import StrEnum
from typing import Final

#: most instants of a backfill
INSTANTS_MAX: Final = 10_000
#: most active backfills of a job
ACTIVE_MAX: Final = 20
#: most runs of a backfill at once
RUNNING_MAX: Final = 100


class Which(StrEnum):
    """Which instants of a range are run (`xxl_job_backfill.which`)."""

    ALL = "all"
    #: those without any run
    MISSING = "missing"
    #: those with runs of which none has succeeded
    FAILED = "failed"


class Order(StrEnum):
    """In which order they are run (`run_order`)."""

    OLDEST_FIRST = "oldest_first"
    NEWEST_FIRST = "newest_first"


class Children(StrEnum):
    """What follows the runs (`children`)."""

    #: nothing
    NONE = "none"
    #: child jobs, and the rounds of the jobs that run after this one
    AS_CONFIGURED = "as_configured"
    #: all that follows the job, in a chain for each instant
    CHAIN = "chain"


class OnFailure(StrEnum):
    """What to do when a run has failed, after its retries (`on_failure`)."""

    STOP = "stop"
    GO_ON = "go_on"


class BackfillState(StrEnum):
    """State of a backfill (`state`)."""

    RUNNING = "running"
    #: it starts nothing; what is in progress ends
    PAUSED = "paused"
    #: a run has failed, and others are still in progress
    STOPPING = "stopping"
    #: it is to end, and runs are still in progress
    CANCELLING = "cancelling"
    #: each instant has its result
    DONE = "done"
    #: it has stopped at a failure, and can be resumed
    FAILED = "failed"
    CANCELLED = "cancelled"


#: states in which something may still run
ACTIVE: Final = (
    BackfillState.RUNNING,
    BackfillState.PAUSED,
    BackfillState.STOPPING,
    BackfillState.CANCELLING,
)


class InstantState(StrEnum):
    """State of an instant of a backfill (`xxl_job_backfill_instant.state`)."""

    #: it has not been started
    WAITING = "waiting"
    #: its run was asked for and has not ended, or is to be retried
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    #: it has failed, and so have its retries
    FAILED = "failed"
    #: it was not run, as it or the whole backfill was withdrawn before
    WITHDRAWN = "withdrawn"
