"""Notifications to systemd, for units with ``Type=notify`` and ``WatchdogSec=``: nothing without systemd."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

logger = logging.getLogger(__name__)

#: how long a notification may wait while systemd reads none: it must not keep a process from ending
SEND_S = 2.0
#: notifications in each watchdog period
BEATS = 4


def notify(state: str) -> None:
    """Send a state such as ``READY=1`` to the socket in NOTIFY_SOCKET; never fails."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(SEND_S)
        sender.sendto(state.encode(), address)


def watchdog_s() -> float | None:
    """Return the interval of notifications that the watchdog needs; None if there is no watchdog."""
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    usec = os.environ.get("WATCHDOG_USEC", "")
    return int(usec) / 1_000_000 / BEATS if is_ours and usec.isdecimal() and int(usec) else None


class Watchdog:
    """Thread that notifies the watchdog while ``is_alive`` returns True; does nothing without one."""

    def __init__(self, is_alive: Callable[[], bool]) -> None:
        self._is_alive = is_alive
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread if systemd expects notifications."""
        if watchdog_s() is not None:
            self._thread.start()

    def stop(self) -> None:
        """End the thread after its current check."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(watchdog_s()):
            if self._is_alive():
                notify("WATCHDOG=1")
            else:
                logger.error("watchdog not notified")
