"""Claim pacing: how many fires a claim takes, how long its lease is, and by when its sends must have begun.

All three follow what recent transactions took, so that a slow database or a busy machine makes runs late, never lost: a lease
covers the claim itself, the time to begin counts from its commit, and a group that cannot be sent in that time is halved.
"""

import time
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple, TypeVar

from sqlalchemy.orm import Session

from app.clock import Millis

Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: fires of one claim
GROUP_MAX = 512
GROUP_MIN = 16
#: a claim slower than this, and than twice the quickest, takes too many fires
LARGE_CLAIM_S = 0.5
#: a call begins within so long after the commit of its claim, or not at all: the lease must outlive it
START_WITHIN_S = 0.9
#: and within so many times what the commit took, where that is longer
START_COMMITS = 3.0
#: extra time for an answer that arrives in pieces
SLOW_ANSWER_S = 1.0
#: longest delay before outcomes are written while fires are due
OUTCOMES_WAIT_S = 1.0
#: longest delay of a claim while claimed runs wait for their permits
BACKLOG_WAIT_S = 0.5
#: transactions of the longest recent duration that a lease covers: the claim, the next claim, and the writing of the outcome
LEASE_TRANSACTIONS = 3
#: what a lease adds to the trigger time-out, besides these transactions
LEASE_MARGIN_S = START_WITHIN_S + SLOW_ANSWER_S + OUTCOMES_WAIT_S + BACKLOG_WAIT_S + 0.6
#: upper limit of what slow transactions add
SLOW_MAX_S = 60.0
#: the longest recent duration decays by this factor with every transaction
FADING = 0.9


class Timing(NamedTuple):
    """When a claim ran, in monotonic seconds: its first statement, and the moment before its commit; and how long its lease is."""

    begun: float
    committing: float
    lease_s: float


def timed(
    work: Callable[[Session, Sequence[Item]], Answer], lease_ms: Millis
) -> Callable[[Session, Sequence[Item]], tuple[Answer, Timing]]:
    """Wrap work on a group so that it also returns its timing; ``lease_ms`` is what the work gives its claims."""

    def work_timed(session: Session, group: Sequence[Item]) -> tuple[Answer, Timing]:
        session.connection()  # on SQLite this waits for other writers: not a part of the lease
        begun = time.monotonic()
        answer = work(session, group)
        return answer, Timing(begun, time.monotonic(), lease_ms / 1000)

    return work_timed


class ClaimPace:
    """The durations of recent transactions, and what follows from them. Used by the dispatcher's loop only."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        #: fires of the next claim
        self.group = GROUP_MAX
        self._is_halved = False
        self._slowest_s = 0.0
        self._quickest_s = inf

    @property
    def lease_s(self) -> float:
        """How long the lease of a claim that begins now has to be."""
        return self._timeout_s + LEASE_MARGIN_S + min(LEASE_TRANSACTIONS * self._slowest_s, SLOW_MAX_S)

    @property
    def lease_ms(self) -> Millis:
        """The same in milliseconds."""
        return round(self.lease_s * 1000)

    def start_before(self, timing: Timing, committed: float) -> float:
        """Return until when the calls of a claim may begin; in the past where it took longer than its lease foresaw."""
        window_s = max(START_WITHIN_S, START_COMMITS * (committed - timing.committing))
        after_start_s = self._timeout_s + LEASE_MARGIN_S - START_WITHIN_S
        return min(timing.committing + window_s, timing.begun + timing.lease_s - after_start_s)

    def observe(self, took_s: float) -> None:
        """Take note of how long a transaction took."""
        self._slowest_s = max(took_s, self._slowest_s * FADING)

    def observe_claim(self, fires: int, took_s: float) -> None:
        """Take note of a claim, and let the next one be smaller where its size made it slow."""
        self.observe(took_s)
        self._is_halved = False
        self._quickest_s = min(took_s, self._quickest_s / FADING)
        if took_s > max(LARGE_CLAIM_S, 2 * self._quickest_s):
            self.group = min(self.group, fires)
            self.shrink()
        elif fires >= self.group // 2:
            self.group = min(self.group * 2, GROUP_MAX)

    def shrink(self) -> None:
        """Halve the next claim, as not all runs of this one could be sent in time; once, however many those are."""
        if not self._is_halved:
            self._is_halved = True
            self.group = max(self.group // 2, GROUP_MIN)
