"""Guard of promises by a console: it evaluates what workers leave undone, and posts that it does.

All workers may be dead: what is due for some seconds is then evaluated and reported here. With
``XXL_JOB_HEARTBEAT_URL`` a service outside gets a request every minute, and misses it if none evaluates.
"""

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from app.clock import MINUTE_MS, SECOND_MS, Clock, Millis, now_ms
from app.database.engine import read_scope
from app.database.faults import fault_log
from app.domain.enums import NodeKind
from app.services.alarms.notifier import AlarmNotifier
from app.services.installation.nodes import node_name
from app.services.operations.readiness import find_silence
from app.services.promises.watch import PromiseWatch
from app.settings.config import Config
from app.store.nodes import nodes

logger = logging.getLogger(__name__)

#: period of a round
PERIOD_S = 1.0
#: what is due for that long is left undone by the workers; without a heartbeat for that long they are dead
BEHIND_MS: Millis = 5 * SECOND_MS
#: an evaluation is recent for that long
RECENT_MS: Millis = 10 * SECOND_MS
#: period of the requests to the service outside, and the wait before the first
BEAT_MS: Millis = MINUTE_MS
FIRST_BEAT_MS: Millis = 5 * SECOND_MS
#: timeouts of a connection to it and of its answer, in seconds
TIMEOUT_S = (4, 10)


class PromiseGuard:
    """Guard of promises; ``start`` runs it in a thread, and the requests in another."""

    def __init__(self, config: Config, is_clock_right: Callable[[], bool], *, clock: Clock = now_ms) -> None:
        self._config, self._clock = config, clock
        self._is_clock_right = is_clock_right
        node = node_name(config)
        self._watch = PromiseWatch(node=node, clock=clock)
        self._notifier = AlarmNotifier(config, node=node)
        self._evaluated_ms: Millis = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, name="promise-guard", daemon=True)]
        if config.heartbeat_url:
            self._threads.append(threading.Thread(target=self._beat, name="promise-beat", daemon=True))

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads; messages that are being sent are not waited for."""
        self._stop.set()
        self._threads[0].join(timeout=2)
        self._notifier.close()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            try:
                self.tick(self._clock())
            except DBAPIError as exc:
                fault_log.write(logger, "promises not evaluated", exc)
            except Exception:  # The end of the thread would end the watch of this console.
                logger.exception("promises not evaluated")

    def tick(self, at_ms: Millis) -> None:
        """Do what the workers have left undone; nothing while the clock is wrong."""
        if not self._is_clock_right():
            return
        with read_scope() as session:
            live_nodes = nodes.find_nodes(session, seen_after_ms=at_ms - BEHIND_MS)
        behind_ms = BEHIND_MS if any(node.kind == NodeKind.WORKERS for node in live_nodes) else 0
        self._watch.tick(at_ms, behind_ms)
        self._notifier.tick_notice(at_ms)
        self._notifier.tick_incidents(at_ms, before_ms=at_ms - behind_ms)
        self._evaluated_ms = at_ms

    def _beat(self) -> None:
        wait_ms = FIRST_BEAT_MS
        while not self._stop.wait(wait_ms / SECOND_MS):
            self.beat(self._clock())
            wait_ms = BEAT_MS

    def beat(self, at_ms: Millis) -> None:
        """Post to the service outside: to ``/fail`` unless promises are evaluated and a scheduler scans."""
        from app.executors.webhook_http import WEBHOOKS

        problem = self.find_problem(at_ms)
        url = self._config.heartbeat_url.rstrip("/") + ("/fail" if problem else "")
        if problem:
            logger.warning("heartbeat failed reason=%r", problem)
        try:
            answer = WEBHOOKS.post(url, data=problem.encode(), timeout=TIMEOUT_S)
        except (OSError, ValueError, RuntimeError) as exc:
            logger.warning("heartbeat not sent error=%s", type(exc).__name__)
            return
        if not answer.ok:
            logger.warning("heartbeat not accepted status=%s", answer.status_code)

    def find_problem(self, at_ms: Millis) -> str:
        """Return in words why nothing can be relied on; empty: all is well."""
        if at_ms - self._evaluated_ms > RECENT_MS:
            return "this console has not evaluated promises for 10 s"
        try:
            with read_scope() as session:
                silence = find_silence(session, now_ms=at_ms)
        except DBAPIError as exc:
            return f"the database cannot be read: {type(exc.orig).__name__}"
        return silence.text if silence is not None else ""
