"""Pulls: when the log of a run is fetched next, and when it is whole. docs/reference/log-archive.md.

After lines have come the next pulls follow 1, 2, 4 … 30 s later; when the run ends at once, and once more ten
seconds after that, as some executors write last lines late.
"""

from typing import Final, NamedTuple

from app.clock import SECOND_MS, Millis
from app.domain.archive.kinds import ArchiveState, Missing

#: shortest and longest pause between two pulls of a log in progress
PAUSE_MIN_MS: Final[Millis] = SECOND_MS
PAUSE_MAX_MS: Final[Millis] = 30 * SECOND_MS
#: next time of a log that is fetched before all others, as its instance is about to be gone
AT_ONCE: Final[Millis] = 0
#: a log is whole when nothing new came so long after the end of its run
LATE_LINES_MS: Final[Millis] = 10 * SECOND_MS
#: an executor that cannot be reached is asked for the log of an ended run for so long
GIVEN_UP_MS: Final[Millis] = 10 * 60 * SECOND_MS


#: part of each second in which no pull begins, from so long before it on
DISPATCH_MS: Final[Millis] = 250
BEFORE_MS: Final[Millis] = 100


def rest_ms(at_ms: Millis) -> Millis:
    """Return for how long pulls leave the machine to dispatch; 0: they need not.

    The instants of cron expressions fall on whole seconds, so most runs are sent at the beginning of one.
    """
    behind_ms = (at_ms + BEFORE_MS) % SECOND_MS
    return max(DISPATCH_MS + BEFORE_MS - behind_ms, 0)


class Progress(NamedTuple):
    """Where the pulls of a log are."""

    state: ArchiveState
    #: when the run ended; 0: it is in progress
    ended_ms: Millis
    #: pause before the last pull; 0: it was the first
    pause_ms: Millis
    #: why lines are missing; empty: none are known to be
    reason: str = ""


class PullOutcome(NamedTuple):
    """What a pull has found."""

    #: whether lines came
    has_lines: bool
    #: whether more lines follow at once, as a piece has a largest size
    has_more: bool = False
    #: why there was no answer; None: there was one
    failure: Missing | None = None


class Next(NamedTuple):
    """What follows a pull."""

    state: ArchiveState
    #: when to pull again; 0: never
    next_ms: Millis
    pause_ms: Millis
    reason: str = ""


def after_pull(progress: Progress, result: PullOutcome, *, at_ms: Millis) -> Next:
    """Return what follows a pull that was made at a time."""
    if result.failure is not None:
        return _after_failure(progress, result.failure, at_ms)
    if result.has_more:
        return Next(progress.state, at_ms + PAUSE_MIN_MS, PAUSE_MIN_MS, progress.reason)
    pause_ms = PAUSE_MIN_MS if result.has_lines else _longer(progress.pause_ms)
    if not progress.ended_ms:
        return Next(ArchiveState.OPEN, at_ms + pause_ms, pause_ms, progress.reason)
    if not result.has_lines and at_ms >= progress.ended_ms + LATE_LINES_MS:
        is_partial = bool(progress.reason)
        state = ArchiveState.PARTIAL if is_partial else ArchiveState.COMPLETE
        return Next(state, 0, 0, progress.reason)
    late_ms = max(at_ms + PAUSE_MIN_MS, progress.ended_ms + LATE_LINES_MS)
    return Next(ArchiveState.ENDING, late_ms, pause_ms, progress.reason)


def _after_failure(progress: Progress, failure: Missing, at_ms: Millis) -> Next:
    pause_ms = _longer(progress.pause_ms)
    reason = failure.value if failure is Missing.JOB_CAP else progress.reason
    if not progress.ended_ms:
        return Next(ArchiveState.OPEN, at_ms + pause_ms, pause_ms, reason)
    is_final = failure in (Missing.LOG_GONE, Missing.REFUSED, Missing.JOB_CAP)
    if at_ms - progress.ended_ms >= (LATE_LINES_MS if is_final else GIVEN_UP_MS):
        return Next(ArchiveState.PARTIAL, 0, 0, failure.value)
    return Next(ArchiveState.ENDING, at_ms + pause_ms, pause_ms, reason)


def _longer(pause_ms: Millis) -> Millis:
    return min(max(2 * pause_ms, PAUSE_MIN_MS), PAUSE_MAX_MS)
