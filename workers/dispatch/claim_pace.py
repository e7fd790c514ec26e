"""Claim pacing: size, lead time and lease of claims, and the deadline of their sends.

All follow the durations of recent transactions, so that a slow database or a busy host makes runs late,
never lost: a lease covers the claim itself, the deadline counts from its commit, and a batch that cannot be
sent in time is halved.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple, TypeVar

from sqlalchemy.orm import Session

from app.clock import Millis, elapsed_s
from app.pipeline.claimed_run import CLAIM_AHEAD_MS

Item = TypeVar("Item")
Result = TypeVar("Result")

#: fires of one claim
GROUP_MAX = 512
GROUP_MIN = 16
#: a claim slower than this, and slower than twice the quickest one, takes too many fires
LARGE_CLAIM_S = 0.5
#: a send starts within this time after the commit of its claim, or not at all: the lease must outlive it
START_WITHIN_S = 0.9
#: that time as a multiple of the commit's duration, where this is longer
START_COMMITS = 3.0
#: extra time for an answer that arrives in pieces
SLOW_ANSWER_S = 1.0
#: longest delay before outcomes are written while fires are due
OUTCOMES_WAIT_S = 1.0
#: longest delay of a claim while claimed runs wait for their permits
BACKLOG_WAIT_S = 0.5
#: transactions of the longest recent duration covered by a lease: this claim, the next, writing the outcome
LEASE_TRANSACTIONS = 3
#: margin of a lease beyond the trigger timeout and these transactions
LEASE_MARGIN_S = START_WITHIN_S + SLOW_ANSWER_S + OUTCOMES_WAIT_S + BACKLOG_WAIT_S + 0.6
#: upper limit of the time that slow transactions add
SLOW_MAX_S = 60.0
#: the longest recent duration decays by this factor with every transaction
DECAY = 0.9
#: time between the end of a claim ahead and the instant
AHEAD_MARGIN_MS = 3.0
#: assumed duration of the first claims, and the decay of the longest recent one
AHEAD_FIRST_MS = 20.0
AHEAD_DECAY = 0.95


class Timing(NamedTuple):
    """When a claim ran, by ``elapsed_s``: first statement, just before its commit; and its lease."""

    started_s: float
    committing: float
    lease_s: float


def with_timing(
    work: Callable[[Session, Sequence[Item]], Result], lease_ms: Millis
) -> Callable[[Session, Sequence[Item]], tuple[Result, Timing]]:
    """Wrap ``work`` so that it also returns its timing; ``lease_ms`` is the lease it gives its claims."""

    def work_timed(session: Session, group: Sequence[Item]) -> tuple[Result, Timing]:
        session.connection()  # On SQLite this waits for other writers, before the lease.
        started_s = elapsed_s()
        result = work(session, group)
        return result, Timing(started_s, elapsed_s(), lease_ms / 1000)

    return work_timed


class ClaimPace:
    """Claim size and lease, from the durations of recent transactions; used by the dispatcher's loop only."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        #: fires of the next claim
        self.group = GROUP_MAX
        self._is_halved = False
        self._slowest_s = 0.0
        self._quickest_s = inf
        #: lead of the claim of prepared fires, which is as long as recent claims of an instant took
        self.ahead_ms = AHEAD_FIRST_MS

    @property
    def lease_s(self) -> float:
        """Lease in seconds for a claim that starts now."""
        return self._timeout_s + LEASE_MARGIN_S + min(LEASE_TRANSACTIONS * self._slowest_s, SLOW_MAX_S)

    @property
    def lease_ms(self) -> Millis:
        """The same in milliseconds."""
        return round(self.lease_s * 1000)

    def start_before(self, timing: Timing, committed_s: float) -> float:
        """Return the deadline for starting a claim's sends; in the past if the claim overran its lease."""
        window_s = max(START_WITHIN_S, START_COMMITS * (committed_s - timing.committing))
        after_start_s = self._timeout_s + LEASE_MARGIN_S - START_WITHIN_S
        return min(timing.committing + window_s, timing.started_s + timing.lease_s - after_start_s)

    def observe(self, took_s: float) -> None:
        """Record the duration of a transaction."""
        self._slowest_s = max(took_s, self._slowest_s * DECAY)

    def observe_claim(self, fires: int, took_s: float) -> None:
        """Record the duration of a claim; make the next one smaller if its size made it slow."""
        self.observe(took_s)
        self._is_halved = False
        self._quickest_s = min(took_s, self._quickest_s / DECAY)
        if took_s > max(LARGE_CLAIM_S, 2 * self._quickest_s):
            self.group = min(self.group, fires)
            self.shrink()
        elif fires >= self.group // 2:
            self.group = min(self.group * 2, GROUP_MAX)

    def observe_ahead(self, late_ms: float) -> None:
        """Record how long after its instant a claim of prepared fires had ended; negative: before it."""
        needed_ms = self.ahead_ms + late_ms + AHEAD_MARGIN_MS
        self.ahead_ms = min(max(needed_ms, self.ahead_ms * AHEAD_DECAY), CLAIM_AHEAD_MS)

    def shrink(self) -> None:
        """Halve the next claim, since runs of this one were not sent in time; once per claim."""
        if not self._is_halved:
            self._is_halved = True
            self.group = max(self.group // 2, GROUP_MIN)
