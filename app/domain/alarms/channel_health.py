"""Health of an alarm channel: what became of the messages sent to it, and when it counts as broken.

A message counts for a channel by its last attempt. It failed if one of the channel's targets (the addresses
of a mail channel) did not accept it, and is lost once it was given up, about four minutes after the first
attempt. A test alarm counts like a message, but not in the numbers of sent and lost ones.

A channel is broken if nothing has arrived since its first failure, and two messages were lost or that
failure is ``BROKEN_AFTER_MS`` old. So a fault that the retries of one message outlast is none.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from app.clock import MINUTE_MS, Millis

#: lost messages in a row that make a channel broken at once
BROKEN_LOST = 2
#: age of the first failure from which on a channel is broken, however few messages there were
BROKEN_AFTER_MS: Millis = 10 * MINUTE_MS


class ChannelState(StrEnum):
    """State of a channel."""

    #: the last message was accepted
    HEALTHY = "healthy"
    #: the last message failed, but that may pass
    FAILING = "failing"
    BROKEN = "broken"
    #: no message in the period that was read
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class MessageResult:
    """Result of a message at its last attempt, for one channel."""

    #: time of the attempt
    at_ms: Millis
    #: error of a target; empty: all accepted it
    problem: str = ""
    #: it will not be tried again
    is_final: bool = True
    is_test: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether a message that is no test was given up."""
        return bool(self.problem) and self.is_final and not self.is_test


@dataclass(frozen=True, slots=True)
class DayCount:
    """Messages of one day; ``failed`` includes those that are still retried."""

    sent: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a channel."""

    state: ChannelState
    #: the first failure since the last success; None: it does not fail
    since_ms: Millis | None = None
    #: messages lost since then
    lost: int = 0
    #: error of the last attempt, unless it succeeded
    problem: str = ""
    #: the last message or test that was accepted; None: none in the period
    last_ok_ms: Millis | None = None
    #: messages by day, oldest first
    days: tuple[DayCount, ...] = ()

    @property
    def is_broken(self) -> bool:
        """Whether its messages are being lost."""
        return self.state is ChannelState.BROKEN

    @property
    def sent(self) -> int:
        """Accepted messages of the period."""
        return sum(day.sent for day in self.days)

    @property
    def failed(self) -> int:
        """Failed messages of the period."""
        return sum(day.failed for day in self.days)


def health_of(
    results: Iterable[MessageResult], *, now_ms: Millis, days: Sequence[Millis] = (), changed_ms: Millis = 0
) -> Health:
    """Return the health of a channel from its results, in any order.

    ``days`` are the beginnings of the days to count, oldest first. What failed before ``changed_ms``, the
    last change of the channel, says nothing about it any more.
    """
    by_time = sorted(results, key=attrgetter("at_ms"))
    counts = _count(by_time, days)
    last_ok_ms = max((result.at_ms for result in by_time if not result.problem), default=None)
    known_ms = max(changed_ms, last_ok_ms + 1 if last_ok_ms is not None else 0)
    failures = [result for result in by_time if result.problem and result.at_ms >= known_ms]
    if not failures:
        state = ChannelState.QUIET if last_ok_ms is None else ChannelState.HEALTHY
        return Health(state, last_ok_ms=last_ok_ms, days=counts)
    loss_count, since_ms = sum(result.is_lost for result in failures), failures[0].at_ms
    is_broken = loss_count >= BROKEN_LOST or now_ms - since_ms >= BROKEN_AFTER_MS
    state = ChannelState.BROKEN if is_broken else ChannelState.FAILING
    return Health(state, since_ms, loss_count, failures[-1].problem, last_ok_ms, counts)


def _count(results: Iterable[MessageResult], days: Sequence[Millis]) -> tuple[DayCount, ...]:
    if not days:
        return ()
    successes, failed = [0] * len(days), [0] * len(days)
    for result in results:
        number = bisect_right(days, result.at_ms) - 1
        if number >= 0 and not result.is_test:
            (failed if result.problem else successes)[number] += 1
    return tuple(map(DayCount, successes, failed))
