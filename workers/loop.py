"""Loop driver: calls a tick repeatedly; an error in one round does not end the loop."""

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, now_ms
from app.database.faults import fault_log
from app.settings.config import Config

logger = logging.getLogger(__name__)

#: one round: takes the wall clock, returns the wait until the next round, in ms
Tick = Callable[[Millis], Millis]

#: wait after a round that failed
ERROR_WAIT_MS: Millis = 1_000
#: A round that takes longer hangs, for a reason that no time-out has ended. The limit is at least so many
#: times the longest wait for an answer of the database.
ROUND_MAX_S = 300.0
ROUND_ANSWERS = 4
#: period of the log line about a round that hangs
STUCK_PERIOD_S = 60.0


def round_max_s(config: Config) -> float:
    """Return after how long a round hangs: one that has several slow statements does not."""
    return max(ROUND_MAX_S, float(ROUND_ANSWERS * config.database_answer_s))


def run_loop(name: str, tick: Tick, stop: threading.Event, clock: Callable[[], Millis] = now_ms) -> None:
    """Call ``tick`` until ``stop`` is set; log an error, once, and go on after ERROR_WAIT_MS."""
    logger.debug("loop started name=%s", name)
    while not stop.is_set():
        try:
            wait_ms = tick(clock())
        except DBAPIError as exc:  # A database that is away needs no traceback.
            fault_log.write(logger, f"loop round failed name={name}", exc)
            wait_ms = ERROR_WAIT_MS
        except Exception:
            logger.exception("loop round failed name=%s", name)
            wait_ms = ERROR_WAIT_MS
        stop.wait(max(wait_ms, 0) / 1000)
    logger.debug("loop ended name=%s", name)


class Loop:
    """A named thread that runs ``run_loop``; ``stop`` waits for it.

    ``max_s``: longest round; None: a round may take any time, as one that deletes old rows does.
    """

    def __init__(self, name: str, tick: Tick, *, max_s: float | None = ROUND_MAX_S) -> None:
        self._name = name
        self._tick = tick
        self._max_s = max_s
        #: when it was logged that the round hangs
        self._logged_at = float("-inf")
        #: when the current round began, by the monotonic clock; None between two rounds
        self._since: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=run_loop, args=(name, self._round, self._stop), name=name, daemon=True
        )

    def _round(self, at_ms: Millis) -> Millis:
        self._since = time.monotonic()
        try:
            return self._tick(at_ms)
        finally:
            self._since = None

    def is_alive(self, now: float) -> bool:
        """Whether the thread runs and its round has not taken too long, by the monotonic clock."""
        since = self._since
        is_stuck = since is not None and self._max_s is not None and now - since > self._max_s
        if is_stuck and now - self._logged_at >= STUCK_PERIOD_S:
            self._logged_at = now
            logger.error("loop stuck name=%s since_s=%d", self._name, now - (since or now))
        return self._thread.is_alive() and not is_stuck

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
