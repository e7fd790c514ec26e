"""Poll for due fires in no ring: written by the console, or left by a dead or restarted node.

Runs at once after a wake-up signal (``app.runtime.wake_up``), otherwise periodically, in a thread of its own:
at rest the dispatcher's loop is not woken for it.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy.exc import DBAPIError

from app.clock import now_ms
from app.database.faults import fault_log
from app.domain.schedules.planning import DueFire
from app.pipeline.claim import find_unseen
from app.pipeline.late import LATE_MS, settle_late
from workers.dispatch.lanes import Lanes
from workers.dispatch.waiting_list import WaitingList

logger = logging.getLogger(__name__)

#: period without wake-ups, and shortest interval between two polls
PERIOD_S = 0.25
APART_S = 0.02
#: period while fires wait to be claimed: those the poll finds would wait behind them
BUSY_PERIOD_S = 1.0
#: period of the check whether fires still wait
BUSY_CHECK_S = 0.01
#: rows of one poll
ROWS = 1_000
#: how long a stop waits for the thread
CLOSE_S = 5.0
#: wait after a database error, here and in the dispatcher
DATABASE_WAIT_S = 1.0


class Poll:
    """Finds due fires and passes on those to be run; the lanes belong to the dispatcher's loop."""

    def __init__(
        self,
        node: str,
        zone: str,
        lanes: Lanes,
        *,
        take: Callable[[Sequence[DueFire]], None],
        take_waiting: Callable[[Sequence[DueFire]], None],
        may_fire: Callable[[], bool],
    ) -> None:
        self._node = node
        self._zone = zone
        self._lanes = lanes
        self._take = take
        self._take_waiting = take_waiting
        self.waiting_list = WaitingList(zone)
        self._may_fire = may_fire
        self._woken = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatch-poll", daemon=True)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread; ``loop`` is the dispatcher's."""
        self._loop = loop
        self._thread.start()

    def wake(self) -> None:
        """Poll at once; from any thread."""
        self._woken.set()

    def request_stop(self) -> None:
        """Let the statement that is being executed be the last one."""
        self._stop.set()
        self._woken.set()

    def close(self) -> None:
        """Wait for the statement that is being executed, at most CLOSE_S."""
        self.request_stop()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        """Poll until stopped."""
        after_id = 0
        while not self._stop.is_set():
            started_s = time.monotonic()
            try:
                due_fires = find_unseen(self._node, after_id=after_id, now_ms=now_ms(), limit=ROWS)
                if due_fires and not self._stop.is_set():
                    asyncio.run_coroutine_threadsafe(self._pass_on(due_fires), self._loop).result()
                ready_fires = self.waiting_list.look(now_ms()) if self._may_fire() else []
                if ready_fires and not self._stop.is_set():
                    self._loop.call_soon_threadsafe(self._take_waiting, ready_fires)
            except DBAPIError as exc:
                fault_log.write(logger, "poll failed", exc)
                self._stop.wait(DATABASE_WAIT_S)
                continue
            except Exception:
                if self._stop.is_set():  # The loop has ended.
                    return
                logger.exception("poll failed")
                self._stop.wait(DATABASE_WAIT_S)
                continue
            after_id = due_fires[-1].id if len(due_fires) == ROWS else 0
            self._pause(started_s)

    async def _pass_on(self, due_fires: list[DueFire]) -> None:
        fresh = [fire for fire in due_fires if not self._lanes.is_backed_off(fire.id, self._loop.time())]
        if fresh and self._may_fire():
            self._take(await self._without_late(fresh))

    async def _without_late(self, due_fires: list[DueFire]) -> list[DueFire]:
        """Settle late fires unknown to this process; return the others."""
        unseen = [
            fire
            for fire in due_fires
            if fire.due_time <= now_ms() - LATE_MS and not self._lanes.knows(fire.id)
        ]
        if not unseen:
            return due_fires
        settle = partial(settle_late, unseen, node=self._node, zone=self._zone, now_ms=now_ms())
        skipped_ids = await self._loop.run_in_executor(None, settle)
        return [fire for fire in due_fires if fire.id not in skipped_ids]

    def _pause(self, started_s: float) -> None:
        """Wait for a wake-up or PERIOD_S; while fires wait to be claimed, up to BUSY_PERIOD_S."""
        self._woken.wait(PERIOD_S)
        self._stop.wait(max(started_s + APART_S - time.monotonic(), 0))
        while self._lanes.waiting and time.monotonic() < started_s + BUSY_PERIOD_S:
            self._stop.wait(BUSY_CHECK_S)
        self._woken.clear()
