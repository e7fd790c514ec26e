"""Kills in progress in this process: a reported success waits until the executor has answered the kill.

Some executors report a killed run as a success before they answer the kill (npm `xxl-job`); without the wait
that result would be the first and win. Failures do not wait, because other executors answer the kill only
after their callback (pyxxl). If the kill is refused, the success counts. Source: docs/reference/clients.md,
section A5.
"""

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from app.runtime.interruptible_wait import pause
from app.store.fires import logs

#: longest wait for the answer and the commit after it; an executor may itself be waiting for us
HELD_S = 1.0
#: pause between two looks at a run that another process kills
LOOK_S = 0.05


class KillsUnderWay:
    """Log ids of the kills in progress; safe to use from several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._log_ids: Counter[int] = Counter()

    @contextmanager
    def hold(self, log_id: int) -> Iterator[None]:
        """Make successes of this run wait until the end of the block."""
        with self._changed:
            self._log_ids[log_id] += 1
        try:
            yield
        finally:
            with self._changed:
                self._log_ids -= Counter([log_id])
                self._changed.notify_all()

    def is_held(self, log_ids: Sequence[int]) -> bool:
        """Return whether a kill of one of these runs is in progress."""
        if not self._log_ids:
            return False
        with self._changed:
            return any(log_id in self._log_ids for log_id in log_ids)

    def wait(self, log_ids: Sequence[int], timeout_s: float = HELD_S) -> None:
        """Wait until no kill of these runs is in progress, at most until the timeout."""
        if self._log_ids:
            with self._changed:
                self._changed.wait_for(lambda: not self.is_held(log_ids), timeout_s)


def await_replacement(log_ids: Collection[int], timeout_s: float = HELD_S) -> None:
    """Wait until runs that another process kills for newer ones have ended, at most until the timeout.

    Each look has its own transaction.
    """
    until = time.monotonic() + timeout_s
    while logs.has_replaced(log_ids) and time.monotonic() < until and not pause(LOOK_S):
        pass


kills = KillsUnderWay()
