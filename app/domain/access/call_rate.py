"""Rate of calls: a token bucket."""

import threading

from app.clock import MINUTE_MS, Millis

#: average number of calls per minute, and burst
A_MINUTE, BURST = 20, 5


class CallRate:
    """Limits calls to ``A_MINUTE`` on average, ``BURST`` at once. Thread-safe."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._since_ms: Millis | None = None
        self._lock = threading.Lock()

    def take(self, *, at_ms: Millis) -> bool:
        """Count a call; False if none is left. ``at_ms``: of a monotonic clock."""
        with self._lock:
            since_ms = at_ms if self._since_ms is None else self._since_ms
            tokens = min(float(BURST), self._left + (at_ms - since_ms) * A_MINUTE / MINUTE_MS)
            self._since_ms = at_ms
            self._left = tokens - 1 if tokens >= 1 else tokens
            return tokens >= 1
