"""Supervisor: starts the children, restarts dead ones with back-off, stops all in order."""

import gc
import logging
import signal
import socket
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType

from app.database.moves import follow
from app.errors import NotConfigured
from app.runtime.systemd import notify
from app.settings.config import Config
from workers.liveness import Liveness, Pulse
from workers.loop import round_max_s
from workers.processes.child import PARTS, start_child

logger = logging.getLogger(__name__)

#: wait before a dead child is restarted: doubles up to the maximum, is reset after an uptime over STABLE_S
RESTART_FIRST_S = 0.2
RESTART_MAX_S = 30.0
STABLE_S = 60.0
#: seconds after which a child that has not ended is killed. The scheduler has the trigger timeout on top:
#: its dispatcher may take 3 s beyond that and the hand-over 2.5 s, which leaves 2.5 s for its other threads
STOP_TIMEOUTS_S = {"scheduler": 8.0, "archiver": 3.0, "monitor": 3.0}
#: period of the checks: at the start and before a restart, and while all children run
CHECK_S = 0.2
SETTLED_S = 1.0
#: number of signals after which children are killed at once
IMPATIENT = 2


@dataclass(slots=True)
class _Child:
    """One child and its history."""

    name: str
    process: BaseProcess
    started_at: float
    backoff_s: float = RESTART_FIRST_S
    restart_at: float | None = None
    #: time of its kill because it hung; None: not since its start
    killed_at: float | None = None


def stop_timeout_s(name: str, config: Config) -> float:
    """Return how long a child may take to end; killed earlier, the scheduler would leave sends unresolved."""
    return STOP_TIMEOUTS_S[name] + (config.trigger_timeout_s if name == "scheduler" else 0)


class Supervisor:
    """Keeps the children running until a signal; the signal handlers only count."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._signals = 0
        self._children: list[_Child] = []
        self._signalled, self._signals_to = socket.socketpair()
        self._pulses = {name: Pulse() for name in PARTS}

    def run(self) -> int:
        """Run until SIGTERM or SIGINT; return the exit code."""
        self._signals_to.setblocking(False)
        signal.set_wakeup_fd(self._signals_to.fileno())  # A signal ends the wait.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._count_signal)
        gc.collect()
        gc.freeze()  # A collection would write to all memory that forked children share.
        try:
            for name in PARTS:
                self._children.append(self._start(name))
            logger.info("workers started children=%s", ",".join(PARTS))
            self._watch()
        except Exception:  # Otherwise the process would wait for the other child for ever.
            self._stop()
            raise
        return self._stop()

    def _watch(self) -> None:
        """Check the children until a signal."""
        liveness = Liveness(self._pulses, start_max_s=round_max_s(self._config))
        while not self._signals:
            liveness.report(time.monotonic())
            self._await_change(SETTLED_S if liveness.is_ready else CHECK_S)
            for child in self._children:
                self._end_lost(child, liveness)
                self._check(child)

    def _await_change(self, period_s: float) -> None:
        """Wait until a child ends or a signal arrives, at most ``period_s``, or CHECK_S before a restart."""
        running = [child.process.sentinel for child in self._children if child.restart_at is None]
        everything = len(running) == len(self._children)
        wait([self._signalled, *running], timeout=period_s if everything else CHECK_S)

    def _count_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _start(self, name: str) -> _Child:
        return _Child(name, start_child(name, follow(self._config), self._pulses[name]), time.monotonic())

    def _end_lost(self, child: _Child, liveness: Liveness) -> None:
        """Kill a child that hangs; it is then restarted like any other that has died."""
        now = time.monotonic()
        is_running = child.restart_at is None and child.process.is_alive()
        # A child that a broken disk holds is killed again, but not each second.
        since = child.killed_at or child.started_at
        if is_running and liveness.is_lost(child.name, now, started_at=since):
            logger.error("child killed name=%s reason=hangs", child.name)
            child.process.kill()
            child.killed_at = now

    def _check(self, child: _Child) -> None:
        """Restart a child that has died, after its back-off."""
        now = time.monotonic()
        if child.restart_at is None:
            if child.process.is_alive():
                return
            if now - child.started_at > STABLE_S:
                child.backoff_s = RESTART_FIRST_S
            self._postpone(child, now, f"died name={child.name} exit_code={child.process.exitcode}")
        elif now >= child.restart_at and not self._signals:
            self._pulses[child.name].reset()
            try:
                child.process = start_child(child.name, follow(self._config), self._pulses[child.name])
            except (OSError, NotConfigured) as exc:  # There is no memory, or a limit of processes.
                if child.backoff_s == RESTART_MAX_S:  # Each failed fork leaves files open.
                    raise
                self._postpone(child, now, f"not started name={child.name} reason={exc}")
            else:
                child.started_at, child.restart_at, child.killed_at = now, None, None

    def _postpone(self, child: _Child, now: float, reason: str) -> None:
        child.restart_at = now + child.backoff_s
        logger.error("child %s restart_in_s=%.1f", reason, child.backoff_s)
        child.backoff_s = min(child.backoff_s * 2, RESTART_MAX_S)

    def _stop(self) -> int:
        """Stop the children one after the other, in the order of PARTS; after a second signal kill the rest.

        The monitor is last: it sends this node's heartbeat and marks it as stopped, which is only right once
        no send waits for an answer, or other nodes would treat those runs as lost.
        """
        logger.info("workers stopping")
        notify("STOPPING=1")
        for child in self._children:
            self._end(child)
        logger.info("workers stopped")
        return 0

    def _end(self, child: _Child) -> None:
        """Terminate a child and wait; kill it after its timeout, or at once after a second signal."""
        until = time.monotonic() + stop_timeout_s(child.name, self._config)
        if child.process.is_alive():
            child.process.terminate()
        while child.process.is_alive() and time.monotonic() < until and self._signals < IMPATIENT:
            wait([child.process.sentinel], timeout=0.1)
        if child.process.is_alive():
            logger.warning("child killed name=%s", child.name)
            child.process.kill()
        child.process.join()
