"""Words of the log archive: what is kept, and how far the log of a run has come."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class ArchiveMode(StrEnum):
    """Of which runs the logs are kept (`XXL_JOB_LOG_ARCHIVE`, `log_archive` of jobs and groups)."""

    OFF = "off"
    FAILED = "failed"
    ALL = "all"


class ArchiveChoice(StrEnum):
    """Archive mode that a job or a group has (`log_archive`)."""

    #: that of the group, or of the installation
    INHERITED = ""
    OFF = "off"
    FAILED = "failed"
    ALL = "all"


#: attributes of jobs and groups that say what is kept, and for how long
KEEPING = ("log_archive", "log_days", "run_days")


def keeping_of(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return what members say of KEEPING; None where they say nothing."""
    return {name: members.get(name) for name in KEEPING}


class ArchiveState(StrEnum):
    """State of the archived log of a run (`xxl_job_log_archive.state`)."""

    #: the run is in progress
    OPEN = "open"
    #: the run has ended, and its log is fetched until nothing more comes
    ENDING = "ending"
    #: nothing came ten seconds after the end
    COMPLETE = "complete"
    #: something may be missing, for a reason that is noted
    PARTIAL = "partial"
    #: its files were deleted: older than its days, or the archive had reached its size
    PURGED = "purged"
    #: its run was deleted, and its files and row will be
    DELETED = "deleted"


#: states in which the log is still fetched
FETCHED = (ArchiveState.OPEN, ArchiveState.ENDING)
#: states in which the log is as the archive has it, but for what its executor may still have behind that
FINAL = (ArchiveState.COMPLETE, ArchiveState.PARTIAL, ArchiveState.PURGED)


class Missing(StrEnum):
    """Why an archived log may lack lines (`reason`)."""

    #: the executor was not reachable any more
    INSTANCE_GONE = "instance_gone"
    #: the executor had no log of the run
    LOG_GONE = "log_gone"
    #: the run has written more than may be kept of one
    RUN_CAP = "run_cap"
    #: the runs of its job have written more on the day than may be kept
    JOB_CAP = "job_cap"
    #: the executor refuses to hand it out
    REFUSED = "refused"
    #: there was no room for it on the disk
    DISK_FULL = "disk_full"
    #: the store did not take it
    STORE_GONE = "store_gone"
    #: its files were deleted as it was older than its days
    EXPIRED = "expired"
    #: its files were deleted because the archive had reached its size
    PURGED = "purged"
    #: a file of the archive is missing or was changed; of readers only
    UNREADABLE = "unreadable"


#: what goes by itself when the store has room and answers again
PASSING = (Missing.DISK_FULL, Missing.STORE_GONE)
