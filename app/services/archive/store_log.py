"""Log of a store that has no room, is read-only or does not answer."""

import logging
import threading
import time

logger = logging.getLogger(__name__)


class StoreLog:
    """One line a minute about a store that has no room or does not answer."""

    PERIOD_S = 60.0

    def __init__(self) -> None:
        #: what failed -> when it was logged
        self._logged_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def write(self, event: str, error: Exception) -> None:
        """Log what failed unless that was done within a minute."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._logged_at.get(event, float("-inf")) < self.PERIOD_S:
                return
            self._logged_at[event] = now_s
        logger.error("%s, the store refuses it reason=%s", event, error)


store_log = StoreLog()
