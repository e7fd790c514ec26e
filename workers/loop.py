"""Loop driver: call a tick repeatedly; an error in one round does not end the loop."""

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, now_ms
from app.database_faults import fault_log

logger = logging.getLogger(__name__)

#: one round: takes the wall clock, returns the wait until the next round, in ms
Tick = Callable[[Millis], Millis]

#: wait after a round that failed
ERROR_WAIT_MS: Millis = 1_000


def run_loop(name: str, tick: Tick, stop: threading.Event, clock: Callable[[], Millis] = now_ms) -> None:
    """Call ``tick`` until ``stop`` is set; log an error, once, and go on after ERROR_WAIT_MS."""
    logger.debug("loop started name=%s", name)
    while not stop.is_set():
        try:
            wait_ms = tick(clock())
        except DBAPIError as exc:  # expected while a database is away: one line, no traceback
            fault_log.write(logger, f"loop round failed name={name}", exc)
            wait_ms = ERROR_WAIT_MS
        except Exception:
            logger.exception("loop round failed name=%s", name)
            wait_ms = ERROR_WAIT_MS
        stop.wait(max(wait_ms, 0) / 1000)
    logger.debug("loop ended name=%s", name)


class Loop:
    """A named thread that runs ``run_loop``; ``stop`` waits for it."""

    def __init__(self, name: str, tick: Tick) -> None:
        self._name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=run_loop, args=(name, tick, self._stop), name=name, daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def request_stop(self) -> None:
        """Stop after the current round, without waiting for it."""
        self._stop.set()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop after the current round and wait for it; log a warning after ``timeout_s``."""
        self._stop.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.warning("loop did not end in time name=%s timeout_s=%s", self._name, timeout_s)
