"""Rate of calls: a token bucket for each caller, in the memory of this process."""

import threading
from collections import OrderedDict

from app.clock import Millis

#: largest number of buckets; the least recently used one is dropped first
CALLERS_MAX = 10_000


class CallRate:
    """Limits each caller to ``calls`` in ``period_ms`` on average, ``burst`` at once. Thread-safe."""

    def __init__(self, calls: int, period_ms: Millis, *, burst: int) -> None:
        self._calls, self._period_ms, self._burst = calls, period_ms, burst
        self._lock = threading.Lock()
        #: caller -> tokens in its bucket, and the time of that count
        self._buckets: OrderedDict[int, tuple[float, Millis]] = OrderedDict()

    def take(self, caller: int = 0, *, at_ms: Millis) -> float:
        """Count a call; return the wait in ms until there is one left, 0: it is counted.

        ``at_ms``: of a monotonic clock.
        """
        with self._lock:
            tokens, since_ms = self._buckets.pop(caller, (float(self._burst), at_ms))
            tokens = min(self._burst, tokens + (at_ms - since_ms) * self._calls / self._period_ms)
            self._buckets[caller] = (tokens - 1 if tokens >= 1 else tokens, at_ms)
            while len(self._buckets) > CALLERS_MAX:
                self._buckets.popitem(last=False)
        return max(1 - tokens, 0.0) * self._period_ms / self._calls
