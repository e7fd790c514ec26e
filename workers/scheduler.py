"""Scheduler child: scan loop, ring loop and dispatcher, with their start and stop order."""

import gc
import logging
import sys
import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from app.clock import Millis, now_ms
from app.database.faults import reason_of
from app.domain.schedules.planning import DueFire
from app.pipeline.clocks.guard import ClockGuard
from app.pipeline.clocks.returns import bring_back
from app.pipeline.handover import hand_back
from app.pipeline.late import LATE_MS
from app.pipeline.scan import scan
from app.pipeline.sent_log_ids import SentLogIds
from app.services.backups.lost_commits import CommitWatch
from app.services.installation.nodes import mark_scanned, node_name
from app.settings.config import Config
from app.settings.home import access_tokens
from workers.dispatch.dispatcher import Dispatcher
from workers.liveness import Pulse
from workers.loop import Loop, round_max_s
from workers.time_ring import TimeRing

logger = logging.getLogger(__name__)

#: period of the scan, and its offset in the second: away from the full second at which most jobs are due
SCAN_PERIOD_MS: Millis = 1_000
SCAN_OFFSET_MS: Millis = 500
#: period of the preparation, and its offset in the second: after the scan
PREPARE_PERIOD_MS: Millis = 250
PREPARE_OFFSET_MS: Millis = 700
#: how long before they are due fires are prepared, and at most, if they are too many for that
PREPARE_AHEAD_MS: Millis = 350
PREPARE_EARLIEST_MS: Millis = 1_350
#: fewer are not worth a transaction of their own
PREPARED_MIN = 32
#: period in which scans are recorded in the database
MARK_PERIOD_MS: Millis = 2_500
#: the sending thread releases the GIL with every system call and must not wait the default 5 ms to regain it
SWITCH_INTERVAL_S = 0.0005
#: GC thresholds: collect young objects after 5,000, since each IN list leaves a reference cycle; older
#: generations rarely, since that traverses every run in flight
GC_THRESHOLDS = (5_000, 200, 50)
#: how long a stop waits for the database when it hands back fires read ahead
HAND_BACK_WAIT_S = 2.5


class Scheduler:
    """All parts of the scheduler child."""

    def __init__(self, config: Config, on_scan: Callable[[], None] = lambda: None) -> None:
        self._config = config
        #: called after every scan
        self._on_scan = on_scan
        self._zone = config.time_zone
        #: when the last scan was recorded for the other nodes
        self._marked_ms: Millis = 0
        self._node = node_name(config)
        self._guard = ClockGuard(now_ms)
        self._ring = TimeRing(now_ms())
        #: the same fires, taken out earlier, to be prepared
        self._ahead = TimeRing(now_ms())
        self._sent = SentLogIds()
        self._commits = CommitWatch(config, self._sent)
        self._dispatcher = Dispatcher(
            config,
            node=self._node,
            tokens=access_tokens(config),
            may_fire=lambda: self._sent.is_ahead and self._guard.is_steady(),
            sent_log_ids=self._sent,
        )
        limit_s = round_max_s(config)
        self._scan = Loop("scan", self.tick_scan, max_s=limit_s)
        self._ring_loop = Loop("ring", self.tick_ring, max_s=limit_s)
        self._ahead_loop = Loop("prepare", self.tick_ahead, max_s=limit_s)

    def start(self) -> None:
        """Start consumers before producers."""
        self._dispatcher.start()
        self._ring_loop.start()
        self._ahead_loop.start()
        self._scan.start()
        gc.freeze()  # Long-lived objects stay out of later collections.
        logger.info("scheduler started node=%s zone=%s", self._node, self._zone)

    def is_alive(self, now: float) -> bool:
        """Whether no loop hangs, by the monotonic clock."""
        return all(part.is_alive(now) for part in (self._scan, self._ring_loop, self._dispatcher))

    def stop(self) -> None:
        """Stop producers before consumers, then hand back fires read ahead for any scheduler's scan."""
        self._scan.stop()
        self._ahead_loop.stop()
        self._ring.wake()
        self._ring_loop.stop()
        self._dispatcher.stop()
        handing_back = threading.Thread(target=self._hand_back, name="hand-back", daemon=True)
        handing_back.start()
        handing_back.join(HAND_BACK_WAIT_S)
        if handing_back.is_alive():
            logger.warning("fires not handed back in time timeout_s=%s", HAND_BACK_WAIT_S)
        logger.info("scheduler stopped node=%s left_in_ring=%s", self._node, len(self._ring))

    def _hand_back(self) -> None:
        """Hand back fires read ahead; if that fails, the next start reads them from the database."""
        try:
            count = hand_back(node=self._node, zone=self._zone, now_ms=now_ms())
        except DBAPIError as exc:
            logger.error("fires not handed back database_error=%s", reason_of(exc))
        else:
            logger.info("fires handed back count=%s", count)

    def tick_scan(self, at_ms: Millis) -> Millis:
        """Scan once and push the fires into the ring; return the wait until the next scan."""
        if not self._guard.check() or not self._commits.check():
            return SCAN_PERIOD_MS
        if self._guard.went_back:
            # The instants that a Java admin has read ahead are stored nowhere.
            if not self._config.shared_with_java:
                # The check may have waited for a connection, so that the time is read again.
                bring_back(zone=self._zone, now_ms=self._guard.now(), has_seen_return=self._guard.seen_back)
            self._guard.forget_return()
        due_fires: list[DueFire] = scan(node=self._node, zone=self._zone, now_ms=at_ms)
        if due_fires:
            self._ring.push(due_fires)
            self._ahead.push(due_fires)
            logger.debug("scanned fires=%s", len(due_fires))
        self._mark_scanned(at_ms)
        self._on_scan()
        return SCAN_PERIOD_MS - (now_ms() - SCAN_OFFSET_MS) % SCAN_PERIOD_MS

    def _mark_scanned(self, at_ms: Millis) -> None:
        """Record the scan for /ready, every few seconds because each record is a commit."""
        if not 0 <= at_ms - self._marked_ms < MARK_PERIOD_MS:
            mark_scanned(self._config, now_ms=at_ms)
            self._marked_ms = at_ms

    def tick_ring(self, at_ms: Millis) -> Millis:
        """Offer fires that are due, or almost, to the dispatcher, then wait for the next entry.

        After a process was stopped for long, the poll finds those that are too late by now, and settles them.
        """
        ahead_ms = self._dispatcher.ahead_ms
        fires = self._ring.take(at_ms + ahead_ms)
        due = [fire for fire in fires if fire.due_time > at_ms - LATE_MS]
        if due:
            self._dispatcher.offer(due)
        if len(due) < len(fires):
            self._dispatcher.forget_prepared([fire for fire in fires if fire.due_time <= at_ms - LATE_MS])
        self._ring.wait(now_ms() + ahead_ms)
        return 0

    def tick_ahead(self, at_ms: Millis) -> Millis:
        """Offer the fires that are due soon for preparation, if they are many."""
        soon = self._ahead.count_until(at_ms + PREPARE_EARLIEST_MS)
        needed_ms = self._dispatcher.preparing_ms(soon) + PREPARE_PERIOD_MS
        ahead = self._ahead.take(at_ms + max(min(needed_ms, PREPARE_EARLIEST_MS), PREPARE_AHEAD_MS))
        if len(ahead) >= PREPARED_MIN:
            self._dispatcher.offer_ahead(ahead)
        period_ms = PREPARE_PERIOD_MS if len(self._ahead) else SCAN_PERIOD_MS
        return period_ms - (now_ms() - PREPARE_OFFSET_MS) % period_ms


def run(config: Config, stop: threading.Event, pulse: Pulse) -> None:
    """Run the scheduler until ``stop`` is set; the body of the child process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    scheduler = Scheduler(config, on_scan=pulse.mark_ready)
    scheduler.start()
    pulse.follow(scheduler.is_alive, stop)
    scheduler.stop()
