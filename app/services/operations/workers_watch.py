"""Watch of the workers by a console: a notice if no scheduler scans, or if workers have died.

All other alarms are sent by workers, so without them nothing would be sent. Of several consoles the first
alive, by name, sends it to the alarm channels.
"""

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import DAY_MS, SECOND_MS, Millis, now_ms
from app.database.engine import read_scope
from app.database.faults import fault_log
from app.domain.enums import NodeKind
from app.services.alarms.channels import Message
from app.services.alarms.notifier import AlarmNotifier
from app.services.alarms.texts import compose_workers_back, compose_workers_lost
from app.services.installation.nodes import node_name
from app.services.operations.readiness import find_silence
from app.settings.config import Config
from app.store.nodes import nodes

logger = logging.getLogger(__name__)

PERIOD_MS: Millis = 10_000
#: A restart takes less. A node has longer, so that the end of all scheduling and of its node are one notice.
SILENT_AFTER_MS: Millis = 60_000
DEAD_AFTER_MS: Millis = 90_000
#: a node that died earlier is forgotten
RECENT_MS: Millis = DAY_MS
#: stands for all schedulers among the names of nodes
SCHEDULING = ""


class WorkersWatch:
    """Watch of the workers; ``start`` runs it in a thread."""

    def __init__(self, config: Config, is_clock_right: Callable[[], bool]) -> None:
        self._config, self._name = config, node_name(config)
        #: with a wrong clock every node would seem dead
        self._is_clock_right = is_clock_right
        self._notifier = AlarmNotifier(config, node=self._name)
        #: name of a node, or SCHEDULING, that is missing -> since when
        self._missing_since: dict[str, Millis] = {}
        #: those of the last notice that are still missing
        self._reported_names = set[str]()
        self._looked_ms: Millis = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workers-watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; messages that are being sent are not waited for."""
        self._stop.set()
        self._thread.join(timeout=2)
        self._notifier.close()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_MS / SECOND_MS):
            try:
                self.tick(now_ms())
            except DBAPIError as exc:
                fault_log.write(logger, "workers not watched", exc)

    def tick(self, at_ms: Millis) -> None:
        """Look at the workers, and send the notice that is due."""
        message = self.find_news(at_ms) if self._is_clock_right() else None
        if message is not None:
            self._notifier.announce(message, at_ms)
        self._notifier.tick_notice(at_ms)

    def find_news(self, at_ms: Millis) -> Message | None:
        """Return the message about what was lost or has come back since the last one; None: nothing."""
        with read_scope() as session:
            silence, dead_names, live_names = self._look(session, at_ms)
        missing_names = {*dead_names, *([SCHEDULING] if silence else [])}
        # After a gap, as of a database that was away, nothing shows how long something has been missing.
        earlier = self._missing_since if at_ms - self._looked_ms <= 2 * PERIOD_MS else {}
        self._missing_since = {name: earlier.get(name, at_ms) for name in missing_names}
        self._looked_ms = at_ms
        if any(self._is_overdue(name, at_ms) for name in missing_names - self._reported_names):
            self._reported_names = missing_names
            return compose_workers_lost(silence, sorted(dead_names), self._config)
        recoveries = self._reported_names & (live_names | {SCHEDULING} - missing_names)
        self._reported_names &= missing_names  # without nodes that are forgotten
        if SCHEDULING in recoveries or (recoveries and not self._reported_names):
            return compose_workers_back(sorted(dead_names), self._config)
        return None

    def _is_overdue(self, name: str, at_ms: Millis) -> bool:
        after_ms = SILENT_AFTER_MS if name == SCHEDULING else DEAD_AFTER_MS
        return at_ms - self._missing_since[name] >= after_ms

    def _look(self, session: Session, at_ms: Millis) -> tuple[str, set[str], set[str]]:
        """Return in words that no scheduler scans, else "", and the names of workers dead and alive.

        Nothing if another console looks after them.
        """
        rows = nodes.find_nodes(session, seen_after_ms=at_ms - RECENT_MS)
        consoles = [row.name for row in rows if row.kind == NodeKind.CONSOLE and row.is_alive(at_ms)]
        if min(consoles, default=self._name) < self._name:
            self._reported_names = set()
            return "", set(), set()
        workers = [row for row in rows if row.kind == NodeKind.WORKERS]
        live_names = {row.name for row in workers if row.is_alive(at_ms)}
        dead_names = {row.name for row in workers} - live_names
        silence = find_silence(session, now_ms=at_ms)
        has_scanned = silence is not None and silence.since_ms is not None  # else there were no workers yet
        return silence.text if silence and has_scanned else "", dead_names, live_names
