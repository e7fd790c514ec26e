"""Rate limit of the API: a token bucket per caller, in the memory of this process."""

import threading
from collections import OrderedDict
from math import ceil

from app.clock import SECOND_MS, Millis
from app.errors import RetryLater

#: requests per second of one API token on average, and largest burst
RATE, BURST = 300, 600
#: largest number of buckets; the least recently used one is dropped first
CALLERS_MAX = 10_000


class RateLimit:
    """Rate limiter: ``RATE`` requests per second for each caller, ``BURST`` at once. Thread-safe."""

    def __init__(self, rate: int = RATE, burst: int = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._lock = threading.Lock()
        #: caller -> tokens in its bucket, and the time of that count
        self._buckets: OrderedDict[int, tuple[float, Millis]] = OrderedDict()

    def take(self, caller: int, *, at_ms: Millis) -> None:
        """Take a token; raises RetryLater if the bucket is empty. ``at_ms``: of a monotonic clock."""
        with self._lock:
            tokens, since_ms = self._buckets.pop(caller, (float(self._burst), at_ms))
            tokens = min(self._burst, tokens + (at_ms - since_ms) * self._rate / SECOND_MS)
            self._buckets[caller] = (max(tokens - 1, 0.0) if tokens >= 1 else tokens, at_ms)
            while len(self._buckets) > CALLERS_MAX:
                self._buckets.popitem(last=False)
        if tokens < 1:
            raise RetryLater(
                f"more than {self._rate} requests a second", retry_after_s=ceil((1 - tokens) / self._rate)
            )
