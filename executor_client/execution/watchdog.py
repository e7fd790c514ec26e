"""Watchdog: one thread for all deadlines, such as timeouts of runs and the steps of a termination."""

import heapq
import itertools
import threading
from collections.abc import Callable

from executor_client.execution.error_boundary import survive
from executor_client.wire.clock import monotonic_s


class Deadline:
    """Action scheduled for an instant, unless it is cancelled first."""

    __slots__ = ("_action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Drop the action; does nothing if it has run."""
        self._action = None

    def expire(self) -> None:
        """Run the action once, if it was not cancelled."""
        action, self._action = self._action, None
        if action is not None:
            action()


class Watchdog:
    """Thread that runs short actions when they are due. An action must not block."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._numbers = itertools.count()
        self._heap: list[tuple[float, int, Deadline]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, *, timeout_s: float = 2.0) -> None:
        """End the thread and drop pending actions."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self._thread.join(timeout_s)

    def after(self, delay_s: float, action: Callable[[], None]) -> Deadline:
        """Schedule an action ``delay_s`` from now."""
        deadline = Deadline(action)
        with self._condition:
            heapq.heappush(self._heap, (monotonic_s() + delay_s, next(self._numbers), deadline))
            self._condition.notify()
        return deadline

    def _run(self) -> None:
        while True:
            deadline = self._next()
            if deadline is None:
                return
            survive(deadline.expire, None, "watchdog action")

    def _next(self) -> Deadline | None:
        """Wait for the next due deadline; None when the watchdog stops."""
        with self._condition:
            while not self._stopping:
                wait_s = self._heap[0][0] - monotonic_s() if self._heap else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._heap)[2]
                self._condition.wait(None if wait_s is None else min(wait_s, threading.TIMEOUT_MAX))
        return None
