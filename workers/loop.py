"""The only while-loop around a tick: whatever happens in one round, the next one comes."""

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, now_ms
from app.database_faults import fault_log

logger = logging.getLogger(__name__)

#: one round of something: takes the wall clock, returns how long to wait for the next one, in ms
Tick = Callable[[Millis], Millis]

#: wait after a round that failed
ERROR_WAIT_MS: Millis = 1_000


def run_loop(name: str, tick: Tick, stop: threading.Event, clock: Callable[[], Millis] = now_ms) -> None:
    """Call ``tick`` until ``stop`` is set. An error is logged here, once, and costs one round."""
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
    """A named thread around ``run_loop`` with a stop that waits."""

    def __init__(self, name: str, tick: Tick) -> None:
        self._name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=run_loop, args=(name, tick, self._stop), name=name, daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let the present round be the last."""
        self._stop.set()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask the loop to end and wait for its round; a missed wait is logged."""
        self._stop.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.warning("loop did not end in time name=%s timeout_s=%s", self._name, timeout_s)
