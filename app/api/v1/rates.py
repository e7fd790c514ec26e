"""Rate limit of the API: a token bucket for each caller, in the memory of this process."""

import threading
from collections import OrderedDict
from math import ceil

from app.clock import SECOND_MS, Millis
from app.errors import RetryLater

#: requests a second of one API token, on average and at once
RATE, BURST = 300, 600
#: callers that are remembered; the one that was seen the longest ago is forgotten first
CALLERS_MAX = 10_000


class RateLimit:
    """Rate limit: ``RATE`` requests a second for each caller, ``BURST`` at once. Thread-safe."""

    def __init__(self, rate: int = RATE, burst: int = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._lock = threading.Lock()
        #: caller -> requests left, and when that was
        self._left: OrderedDict[int, tuple[float, Millis]] = OrderedDict()

    def take(self, caller: int, *, at_ms: Millis) -> None:
        """Count a request; raises RetryLater if the caller has none left. ``at_ms``: of a monotonic clock."""
        with self._lock:
            left, since_ms = self._left.pop(caller, (float(self._burst), at_ms))
            left = min(self._burst, left + (at_ms - since_ms) * self._rate / SECOND_MS)
            self._left[caller] = (max(left - 1, 0.0) if left >= 1 else left, at_ms)
            while len(self._left) > CALLERS_MAX:
                self._left.popitem(last=False)
        if left < 1:
            raise RetryLater(
                f"more than {self._rate} requests a second", retry_after_s=ceil((1 - left) / self._rate)
            )
