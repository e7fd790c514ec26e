"""Missing lines: what an archived log lacks, in words."""

from typing import NamedTuple

from app.domain.archive.kinds import Missing
from app.domain.text.texts import N_, Text


class MissingLines(NamedTuple):
    """Lines that can be had nowhere, both ends inclusive."""

    first: int
    #: 0: all from the first one on, if there are any
    last: int
    reason: Missing
    text: Text


class Caps(NamedTuple):
    """How much is kept, in MiB: of a run, and of the runs of a job on a day."""

    run_mb: int = 0
    job_day_mb: int = 0


#: reasons for which lines were fetched and given up, or could have been fetched
_NOT_KEPT = (Missing.RUN_CAP, Missing.JOB_CAP, Missing.EXPIRED, Missing.PURGED)


def missing_lines(first: int, last: int, reason: Missing, *, caps: Caps, pull_time: str = "") -> MissingLines:
    """Return missing lines with their text; ``pull_time``: local time of the last pull that was answered."""
    why = _why(reason, caps, pull_time)
    if reason in _NOT_KEPT:
        text = _not_kept(first, last, why)
    elif reason is Missing.UNREADABLE:
        text = N_("Lines %(first)s–%(last)s cannot be read: %(reason)s", first=first, last=last, reason=why)
    elif last:
        text = N_("Lines %(first)s–%(last)s were not fetched: %(reason)s", first=first, last=last, reason=why)
    else:
        text = N_("Lines from %(first)s on were not fetched: %(reason)s", first=first, reason=why)
    return MissingLines(first, last, reason, text)


def _not_kept(first: int, last: int, why: Text) -> Text:
    if last:
        return N_("Lines %(first)s–%(last)s were not kept: %(reason)s", first=first, last=last, reason=why)
    return N_("Lines from %(first)s on were not kept: %(reason)s", first=first, reason=why)


def _why(reason: Missing, caps: Caps, pull_time: str) -> Text:
    match reason:
        case Missing.INSTANCE_GONE if pull_time:
            return N_("the instance did not answer after %(at)s", at=pull_time)
        case Missing.INSTANCE_GONE:
            return N_("the instance did not answer")
        case Missing.LOG_GONE:
            return N_("the executor had no log of the run")
        case Missing.RUN_CAP:
            return N_("the log is longer than %(size)s MB", size=caps.run_mb)
        case Missing.JOB_CAP:
            return N_("the runs of the job wrote more than %(size)s MB on that day", size=caps.job_day_mb)
        case Missing.REFUSED:
            return N_("the executor refused to return them")
        case Missing.DISK_FULL:
            return N_("there was no room in the log archive")
        case Missing.STORE_GONE:
            return N_("the log archive did not answer")
        case Missing.EXPIRED:
            return N_("the log is older than logs of the job are archived")
        case Missing.PURGED:
            return N_("the log archive had reached its size")
        case Missing.UNREADABLE:
            return N_("a file of the log archive is missing or was changed")
