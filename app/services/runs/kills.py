"""Kills this process has under way: a success that comes meanwhile waits until the executor has answered the kill.

Some executors report a run that was killed as a success, and do so before they answer (npm `xxl-job`): without the wait that
result would be the first one. Failures do not wait: others answer the kill only after they have told it (pyxxl). Where the kill
is refused the success counts as it came. Source: docs/reference/clients.md, section A5.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

#: an executor's answer and the commit after it are there by then, unless it waits for us in turn
HELD_S = 1.0


class KillsUnderWay:
    """Log ids between the order to kill and its outcome; one lock around all of it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._log_ids: Counter[int] = Counter()

    @contextmanager
    def hold(self, log_id: int) -> Iterator[None]:
        """Hold successes of this run back until the end of the block."""
        with self._changed:
            self._log_ids[log_id] += 1
        try:
            yield
        finally:
            with self._changed:
                self._log_ids -= Counter([log_id])
                self._changed.notify_all()

    def wait(self, log_ids: Sequence[int], timeout_s: float = HELD_S) -> None:
        """Return when none of these runs is being killed, at the latest after the time-out."""
        if self._log_ids:
            with self._changed:
                self._changed.wait_for(
                    lambda: not any(log_id in self._log_ids for log_id in log_ids), timeout_s
                )


kills = KillsUnderWay()
