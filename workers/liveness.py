"""Liveness of the children: each reports it in shared memory, and the supervisor notifies systemd.

``READY=1`` once the first scan is done, ``WATCHDOG=1`` while no loop of any child hangs. A child that hangs
is logged, and ended by the supervisor, with or without a watchdog.
"""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Mapping

from app.runtime.systemd import notify, watchdog_s

logger = logging.getLogger(__name__)

#: period in which a child checks its loops
CHECK_S = 1.0
#: a child that has not reported for this long is being restarted, or hangs
FRESH_S = 30.0
#: one that goes on hanging for so long is ended; a suspended host has woken all processes by then
PATIENCE_S = 30.0


class Pulse:
    """Liveness of one child, shared with the supervisor; both use the monotonic clock of the host."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._beat_at = spawn.RawValue("d", time.monotonic())
        self._ready = spawn.RawValue("b", 0)
        self._has_begun = spawn.RawValue("b", 0)

    def reset(self) -> None:
        """Note that the child is started once more, and takes its time to the first report."""
        self._has_begun.value = 0

    def mark_ready(self) -> None:
        """Report that the child has started its work."""
        self._ready.value = 1

    def follow(self, is_alive: Callable[[float], bool], stop: threading.Event) -> None:
        """Report until ``stop`` is set that the child is alive, as long as ``is_alive(now)``."""
        while not stop.wait(CHECK_S):
            now = time.monotonic()
            if is_alive(now):
                self._beat_at.value = now
                self._has_begun.value = 1

    @property
    def has_begun(self) -> bool:
        """Whether the child has reported since its start, which may wait for the database."""
        return bool(self._has_begun.value)

    @property
    def is_ready(self) -> bool:
        """Whether the child has ever started its work."""
        return bool(self._ready.value)

    def is_fresh(self, now: float) -> bool:
        """Whether the child reported within FRESH_S."""
        return now - float(self._beat_at.value) < FRESH_S


class Liveness:
    """Watches the pulses of all children, by name, and notifies systemd."""

    def __init__(self, pulses: Mapping[str, Pulse], *, start_max_s: float = FRESH_S) -> None:
        self._pulses = pulses
        #: how long a child may take to its first report
        self._start_max_s = start_max_s
        #: child that hangs -> since when
        self._hanging: dict[str, float] = {}
        self.is_ready = False
        self._interval_s = watchdog_s()
        self._notified_at = time.monotonic()

    def report(self, now: float) -> None:
        """Notify if something has changed or the watchdog's interval has passed; call it often."""
        self._log_changes(now)
        if not self.is_ready and all(pulse.is_ready for pulse in self._pulses.values()):
            self.is_ready = True
            logger.info("workers ready")
            notify("READY=1")
        if self._interval_s is None or now - self._notified_at < self._interval_s:
            return
        self._notified_at = now
        if self._hanging:
            logger.error("watchdog not notified, a child hangs or is being restarted")
        else:
            notify("WATCHDOG=1")

    def is_lost(self, name: str, now: float, *, started_at: float) -> bool:
        """Whether a child, started then, has been hanging for PATIENCE_S and will not go on by itself."""
        quiet_s = FRESH_S if self._pulses[name].has_begun else self._start_max_s
        since = max(self._hanging.get(name, now), started_at + quiet_s)
        return now - since >= PATIENCE_S

    def _log_changes(self, now: float) -> None:
        """Log the children that do not report any more, and those that report again."""
        hanging = {name for name, pulse in self._pulses.items() if not pulse.is_fresh(now)}
        for name in sorted(hanging - self._hanging.keys()):
            logger.error("child hangs or is being restarted name=%s", name)
        for name in sorted(self._hanging.keys() - hanging):
            logger.warning("child works again name=%s", name)
        self._hanging = {name: self._hanging.get(name, now) for name in hanging}
